//! Golden vectors, and agreement with `rand_distr`, which shares no code with us: two-sample
//! Kolmogorov-Smirnov distances of fixed seeds, below the critical value for one in a thousand.

use super::*;
use rand_distr::Distribution;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

const SAMPLES: usize = 200_000;

/// The largest distance between the empirical distributions of two samples.
fn distance(mut a: Vec<f64>, mut b: Vec<f64>) -> f64 {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let share =
        |sample: &[f64], x: f64| sample.partition_point(|&y| y <= x) as f64 / sample.len() as f64;
    a.iter().map(|&x| (share(&a, x) - share(&b, x)).abs()).fold(0.0, f64::max)
}

fn assert_same(ours: impl Fn(&mut Stream) -> f64, theirs: &impl Distribution<f64>) {
    let mut rng = Stream::new(7, "ours");
    let ours = (0..SAMPLES).map(|_| ours(&mut rng)).collect();
    let theirs = theirs.sample_iter(Xoshiro256PlusPlus::seed_from_u64(7)).take(SAMPLES).collect();
    let critical = 1.95 * libm::sqrt(2.0 / SAMPLES as f64);
    let distance = distance(ours, theirs);
    assert!(distance < critical, "distance {distance} above {critical}");
}

fn first<T>(sample: impl Fn(&mut Stream) -> T) -> [T; 4] {
    let mut rng = Stream::new(1, "golden");
    std::array::from_fn(|_| sample(&mut rng))
}

#[test]
fn zipf_is_zipf() {
    for theta in [0.4, 0.99, 1.0, 1.2, 2.5] {
        let zipf = Zipf::new(1_000, theta).unwrap();
        let oracle = rand_distr::Zipf::new(1_000.0, theta).unwrap();
        assert_same(|rng| zipf.sample(rng) as f64 + 1.0, &oracle);
    }
}

/// The hottest of very many items gets 1 / zeta(n, theta), as the sum over all of them says.
#[test]
fn zipf_is_exact_for_many_items() {
    let n = 1u64 << 22;
    for theta in [0.8, 1.1] {
        let zeta: f64 = (1..=n).map(|k| libm::pow(k as f64, -theta)).sum();
        let zipf = Zipf::new(n, theta).unwrap();
        let mut rng = Stream::new(3, "zipf");
        let hottest = (0..SAMPLES).filter(|_| zipf.sample(&mut rng) == 0).count() as f64;
        let expected = SAMPLES as f64 / zeta;
        assert!((hottest - expected).abs() < 4.0 * libm::sqrt(expected), "{hottest} of {expected}");
    }
}

/// The inverse of the textbook's pareto variable, on the grid of the items.
#[test]
fn pareto_is_pareto() {
    let n = 1u64 << 40;
    for h in [0.1, 0.2, 0.9] {
        let pareto = Pareto::new(n, h).unwrap();
        let oracle = rand_distr::Pareto::new(1.0, libm::log1p(-h) / libm::log(h)).unwrap();
        let item = oracle.map(|x: f64| libm::floor((n - 1) as f64 / x));
        assert_same(|rng| pareto.sample(rng) as f64, &item);
    }
}

/// The rule that users know: 80 percent of the draws on 20 percent of the items.
#[test]
fn pareto_keeps_the_80_20_rule() {
    let pareto = Pareto::new(1_000_000, 0.2).unwrap();
    let mut rng = Stream::new(5, "pareto");
    let hot = (0..SAMPLES).filter(|_| pareto.sample(&mut rng) < 200_000).count();
    assert!((hot as f64 / SAMPLES as f64 - 0.8).abs() < 0.005);
}

#[test]
fn normal_is_normal() {
    let normal = Normal::new(1 << 40, 10.0).unwrap();
    let n = (1u64 << 40) as f64;
    let oracle = rand_distr::Normal::new(n / 2.0, n / 10.0).unwrap();
    assert_same(|rng| normal.sample(rng) as f64, &oracle);
}

/// No parameter makes an item that does not exist.
#[test]
fn items_stay_in_range() {
    let mut rng = Stream::new(9, "range");
    for n in [1, 2, 3, 1 << 28, (1 << 53) - 1] {
        for _ in 0..20_000 {
            for theta in [1e-9, 0.5, 1.0, 1.0 + 1e-12, 30.0] {
                assert!(Zipf::new(n, theta).unwrap().sample(&mut rng) < n);
            }
            for h in [1e-9, 0.5, 0.999] {
                assert!(Pareto::new(n, h).unwrap().sample(&mut rng) < n);
            }
            for percent in [0.0, 5.0, 100.0] {
                assert!(Normal::new(n, percent).unwrap().sample(&mut rng) < n);
            }
        }
    }
}

#[test]
fn exponential_is_exponential() {
    let exponential = Exponential::new(250.0).unwrap();
    assert_same(|rng| exponential.sample(rng), &rand_distr::Exp::new(1.0 / 250.0).unwrap());
}

#[test]
fn gamma_is_gamma() {
    for (shape, scale) in [(0.3, 1.0), (1.0, 2.0), (4.5, 100.0)] {
        let gamma = Gamma::new(shape, scale).unwrap();
        assert_same(|rng| gamma.sample(rng), &rand_distr::Gamma::new(shape, scale).unwrap());
    }
}

#[test]
fn real_numbers_are_distributed_as_they_should() {
    let gaussian = Gaussian::new(-3.0, 2.5).unwrap();
    assert_same(|rng| gaussian.sample(rng), &rand_distr::Normal::new(-3.0, 2.5).unwrap());
    let lognormal = Lognormal::new(1.5, 0.5).unwrap();
    assert_same(|rng| lognormal.sample(rng), &rand_distr::LogNormal::new(1.5, 0.5).unwrap());
    let weibull = Weibull::new(1.7, 40.0).unwrap();
    assert_same(|rng| weibull.sample(rng), &rand_distr::Weibull::new(40.0, 1.7).unwrap());
    let triangular = Triangular::new(-1.0, 5.0, 0.5).unwrap();
    assert_same(
        |rng| triangular.sample(rng),
        &rand_distr::Triangular::new(-1.0, 5.0, 0.5).unwrap(),
    );
}

#[test]
fn impossible_parameters_are_refused() {
    for theta in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Zipf::new(10, theta).is_err());
        assert!(Exponential::new(theta).is_err());
        assert!(Gamma::new(theta, 1.0).is_err() && Gamma::new(1.0, theta).is_err());
    }
    assert!(Gaussian::new(0.0, -1.0).is_err() && Lognormal::new(f64::NAN, 1.0).is_err());
    assert!(Weibull::new(0.0, 1.0).is_err() && Weibull::new(1.0, -1.0).is_err());
    assert!(Triangular::new(1.0, 1.0, 1.0).is_err() && Triangular::new(0.0, 1.0, 2.0).is_err());
    for h in [0.0, 1.0, -0.5, f64::NAN] {
        assert!(Pareto::new(10, h).is_err());
    }
    assert!(Normal::new(10, -1.0).is_err() && Normal::new(10, 101.0).is_err());
    assert!(Zipf::new(0, 1.0).is_err() && Pareto::new(1 << 53, 0.5).is_err());
}

/// The same numbers on every machine and with every compiler.
#[test]
fn golden_vectors() {
    let zipf = Zipf::new(1 << 28, 1.2).unwrap();
    assert_eq!(first(|rng| zipf.sample(rng)), [0, 1, 34, 55327]);
    let flat = Zipf::new(1 << 28, 0.6).unwrap();
    assert_eq!(first(|rng| flat.sample(rng)), [2742202, 5855226, 66440555, 215888936]);
    let pareto = Pareto::new(1 << 28, 0.2).unwrap();
    assert_eq!(first(|rng| pareto.sample(rng)), [76613253, 46299403, 590525, 4]);
    let normal = Normal::new(1 << 28, 10.0).unwrap();
    assert_eq!(first(|rng| normal.sample(rng)), [148541877, 130474106, 178513466, 127341264]);
    let exponential = Exponential::new(250.0).unwrap();
    assert_eq!(
        first(|rng| exponential.sample(rng).to_bits()),
        [4646779243045878484, 4645442367454964130, 4639118992174084261, 4626827163167400084]
    );
    let gamma = Gamma::new(4.5, 100.0).unwrap();
    assert_eq!(
        first(|rng| gamma.sample(rng).to_bits()),
        [4647920273203307585, 4644051710941221132, 4645155740804065582, 4644114351650569268]
    );
    let small = Gamma::new(0.3, 1.0).unwrap();
    assert_eq!(
        first(|rng| small.sample(rng).to_bits()),
        [4608040494892010121, 4613202082552910580, 4604649654687333796, 4591551959295710168]
    );
}
