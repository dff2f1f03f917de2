// The cotangent Laplacian of a mesh whose vertices move, called from Rust.
//
//   program = geoopt.compile(geoopt.operators.cotan_laplacian, V, F)
//   program.export("laplacian", name="laplacian")
//   V.tofile("positions.bin")  # float64, as the program was compiled
//
// and then, with the files of that folder,
//   cc -O3 -march=native -c laplacian.c && ar rcs liblaplacian.a laplacian.o
//   rustc --edition 2021 -O laplacian.rs -L . -l static=laplacian -l m
use std::os::raw::{c_double, c_int, c_void};

extern "C" {
    fn laplacian_open(tables: *mut c_void, bytes: *const c_void, size: usize) -> c_int;
    fn laplacian(tables: *const c_void, inputs: *const *const c_double, outputs: *const *mut c_double, workspace: *mut c_double);
}

/// The numbers that laplacian.h tells: LAPLACIAN_INPUT0, OUTPUT0, OUTPUT1, WORKSPACE, and how many tables there are.
fn main() {
    let names: Vec<String> = std::env::args().collect();
    if names.len() < 7 {
        eprintln!("usage: {} POSITIONS INPUT0 OUTPUT0 OUTPUT1 WORKSPACE TABLES [laplacian.bin]", names[0]);
        std::process::exit(2);
    }
    let size = |at: usize| names[at].parse::<usize>().expect("a size that laplacian.h tells");
    let read = |at: usize| std::fs::read(&names[at]).expect("a file");
    let v: Vec<f64> = read(1).chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect();
    let bytes: Vec<u64> = match names.get(7) {
        Some(_) => read(7).chunks(8).map(|b| { let mut w = [0; 8]; w[..b.len()].copy_from_slice(b); u64::from_ne_bytes(w) }).collect(),
        None => Vec::new(), // begins at a multiple of 8
    };
    let length = names.get(7).map_or(0, |name| std::fs::metadata(name).unwrap().len() as usize);
    assert_eq!(v.len(), size(2));
    let (mut l, mut m, mut workspace) = (vec![0.0; size(3)], vec![0.0; size(4)], vec![0.0; size(5)]);
    let mut tables: Vec<*const c_void> = vec![std::ptr::null(); size(6)];
    unsafe {
        let found = tables.as_mut_ptr() as *mut c_void;
        assert_eq!(laplacian_open(found, bytes.as_ptr() as *const c_void, length), 0, "these are not its tables");
        laplacian(found, [v.as_ptr()].as_ptr(), [l.as_mut_ptr(), m.as_mut_ptr()].as_ptr(), workspace.as_mut_ptr());
    }
    println!("sum of L = {:.1e}, area = {:.12}", l.iter().sum::<f64>().abs(), m.iter().sum::<f64>());
}
