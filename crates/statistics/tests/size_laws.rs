//! The recommendation of `size` for simulated runs of hidden laws.
//!
//! Right is the size whose right number of replicas costs least, with that number or one more. The right number
//! is the least whose true capacity, with headroom, carries the target within the objective.

#[path = "size/generated_laws.rs"]
mod generated_laws;
#[path = "size/generated_run.rs"]
mod generated_run;
#[path = "size/generated_trial.rs"]
mod generated_trial;

use generated_laws::{Law, World};
use results::{BindingResource, SizeNote, SizeNoteKind, SizeOption};
use statistics::size::size;

const SEEDS: u64 = 100;

/// The recommended option of a run of a world.
fn recommended(world: &World, seed: u64) -> Option<SizeOption> {
    let objective = format!("p99={}ms", world.bound_ms).parse().expect("an objective");
    let result = size(&world.question(), Some(objective), &[world.run(seed)]);
    result.answers.first()?.recommendation().cloned()
}

fn assert_right_in_90_of_100(law: Law) {
    let (mut right, mut too_few, mut wrong) = (0, 0, Vec::new());
    for seed in 0..SEEDS {
        let world = World::new(law, seed);
        let cheapest = world.cheapest();
        let Some(option) = recommended(&world, seed) else {
            wrong.push(format!("{seed}: no answer in {world:?}"));
            continue;
        };
        let cores = option.cpu_limit_cores.expect("a limit");
        let (planned, truth) = (option.planned.replicas, world.truth(cores));
        too_few += usize::from(planned < truth.replicas);
        if cores == cheapest.cores && (truth.replicas..=truth.replicas + 1).contains(&planned) {
            right += 1;
        } else {
            let capacity = world.capacity(cores);
            wrong.push(format!(
                "{seed}: {planned} of {cores}, not {cheapest:?}; there {truth:?}, {capacity:.0}/s; {:?} in {world:?}",
                option.capacity
            ));
        }
    }
    assert!(right >= 90, "{law:?}: {right} of {SEEDS}:\n{}", wrong.join("\n"));
    // The capacity's interval holds in 95 of 100.
    assert!(too_few <= 5, "{law:?}: too few replicas in {too_few} of {SEEDS}");
}

#[test]
fn capacity_is_that_of_the_best_clients_where_throughput_falls() {
    const WORLDS: u64 = 10;
    let mut noted = 0;
    for seed in 0..WORLDS {
        let world = World::new(Law::Falling, seed);
        let option = recommended(&world, seed).expect("an answer");
        let (clients, most) = (option.capacity.clients.expect("a closed loop"), generated_laws::CLIENTS[8]);
        assert!(clients < most && option.measured.clients == Some(clients), "{option:?}");
        assert!(option.capacity.rps.high.is_some() && option.binds != BindingResource::Load, "{option:?}");
        let is_noted = |note: &SizeNote| note.kind == SizeNoteKind::MoreClientsCarryLess;
        noted += u64::from(option.notes.iter().any(is_noted));
    }
    // A decline within the noise has no note.
    assert!(noted >= WORLDS / 2, "{noted}");
}

#[test]
fn size_is_right_where_throughput_falls_with_clients() {
    assert_right_in_90_of_100(Law::Falling);
}

#[test]
fn size_is_right_under_the_universal_scalability_law() {
    assert_right_in_90_of_100(Law::Usl);
}

#[test]
fn size_is_right_where_the_objective_binds() {
    assert_right_in_90_of_100(Law::Saturating);
}

#[test]
fn size_is_right_where_a_smaller_replica_costs_less() {
    assert_right_in_90_of_100(Law::SmallerCheaper);
}
