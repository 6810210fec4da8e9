//! Tests of the protocol: members on a simulated API server, with every fault that the protocol survives.

mod world;

use std::time::Duration;

use okt_fuzz::{Dice, check};

use self::world::{ALL, Fault, NONE, World};
use super::ranges::Ranges;

const SECOND: Duration = Duration::from_secs(1);

/// A group of `size` members that holds all ranges.
fn settled(size: usize, limit: usize, dice: &mut Dice) -> World {
    let mut world = World::new();
    for _ in 0..size {
        world.start(limit, dice);
    }
    world.run(60 * SECOND, NONE, dice);
    assert_eq!(world.unheld(), Ranges::NONE);
    world
}

#[test]
fn no_two_members_hold_a_range_whatever_happens_and_all_ranges_are_held_afterwards() {
    check(60, |dice| {
        let size = 2 + dice.below(4);
        let limit = [1, 2, 64][dice.below(3)];
        let mut world = settled(size, limit, dice);
        // Those that join later have other lengths.
        world.lengths = &[10, 15, 25];
        // Some errors need faults that others would hide.
        let faults: Vec<Fault> = ALL.iter().copied().filter(|_| dice.below(3) > 0).collect();
        world.run(150 * SECOND, &faults, dice);
        world.heal();
        world.run(120 * SECOND, NONE, dice);
        assert_eq!(world.unheld(), Ranges::NONE, "{world:?}");
        world.assert_balanced();
        let writes = world.table_writes();
        world.run(30 * SECOND, NONE, dice);
        assert_eq!(world.table_writes(), writes, "it comes to rest");
    });
}

#[test]
fn after_a_backup_was_restored_no_two_members_hold_a_range_and_all_ranges_are_held() {
    check(30, |dice| {
        let mut world = settled(3, [1, 64][dice.below(2)], dice);
        world.back_up();
        // The holders change after the backup.
        world.start(64, dice);
        world.stop_the_oldest();
        world.run(60 * SECOND, NONE, dice);
        world.restore(dice);
        // Members of the backup may be those that die next.
        world.run(20 * SECOND, &[Fault::Deaths], dice);
        world.run(90 * SECOND, NONE, dice);
        assert_eq!(world.unheld(), Ranges::NONE, "{world:?}");
    });
}

#[test]
fn the_ranges_of_a_killed_member_are_held_again_after_at_most_18_seconds_and_a_half() {
    let mut worst = Duration::ZERO;
    check(20, |dice| {
        let limit = [1, 64][dice.below(2)];
        let mut world = settled(3, limit, dice);
        world.kill_a_holder(dice);
        let mut without = Duration::ZERO;
        while world.unheld() != Ranges::NONE {
            world.run(SECOND / 20, NONE, dice);
            without += SECOND / 20;
            assert!(without <= Duration::from_millis(18_500), "{world:?}");
        }
        worst = worst.max(without);
    });
    println!("without a holder after a kill: at most {worst:?}");
}

#[test]
fn a_clean_stop_hands_over_in_under_a_second() {
    let mut worst = Duration::ZERO;
    check(20, |dice| {
        let limit = [1, 64][dice.below(2)];
        let mut world = settled(3, limit, dice);
        world.stop_a_holder(dice);
        let mut without = Duration::ZERO;
        for _ in 0..100 {
            world.run(SECOND / 20, NONE, dice);
            if world.unheld() != Ranges::NONE {
                without += SECOND / 20;
            }
        }
        assert!(without < SECOND, "{without:?}: {world:?}");
        worst = worst.max(without);
        assert_eq!(world.running(), 2, "it has left: {world:?}");
    });
    println!("without a holder after a clean stop: at most {worst:?}");
}

#[test]
fn a_member_that_stops_waits_for_nothing_that_a_dead_one_was_to_give_it() {
    check(20, |dice| {
        let mut world = settled(1, 64, dice);
        world.start(64, dice);
        while !world.is_moving() {
            world.run(SECOND / 20, NONE, dice);
        }
        world.kill_the_oldest();
        world.stop_the_oldest();
        world.run(40 * SECOND, NONE, dice);
        assert!(!world.is_running("member-2"), "{world:?}");
        world.run(60 * SECOND, NONE, dice);
        assert_eq!(world.unheld(), Ranges::NONE, "{world:?}");
    });
}

#[test]
fn scaling_moves_the_least_possible_and_an_outage_moves_nothing() {
    check(20, |dice| {
        let mut world = settled(1, 64, dice);
        let moved = |world: &mut World, dice: &mut Dice| {
            let before = world.moves();
            world.run(60 * SECOND, NONE, dice);
            world.moves() - before
        };
        world.start(64, dice);
        world.start(64, dice);
        assert_eq!(moved(&mut world, dice), 42);
        let held = world.stop_a_holder(dice);
        assert_eq!(moved(&mut world, dice), held);
        world.cut_everybody_off(40 * SECOND);
        assert_eq!(moved(&mut world, dice), 0);
        assert_eq!(world.unheld(), Ranges::NONE);
    });
}

#[test]
fn a_switch_between_one_leader_and_shards_leaves_no_range_without_a_holder() {
    check(10, |dice| {
        let mut world = settled(3, 1, dice);
        for limit in [64, 1] {
            // A rolling update: each member is replaced by one with another limit.
            for _ in 0..3 {
                world.start(limit, dice);
                world.run(10 * SECOND, NONE, dice);
                world.stop_the_oldest();
                let mut without = Duration::ZERO;
                for _ in 0..200 {
                    world.run(SECOND / 20, NONE, dice);
                    if world.unheld() != Ranges::NONE {
                        without += SECOND / 20;
                    }
                }
                assert!(without < SECOND, "{without:?}");
            }
            world.run(30 * SECOND, NONE, dice);
            world.assert_balanced();
        }
    });
}

#[test]
fn deleted_leases_and_a_deleted_table_cause_no_second_holder() {
    check(15, |dice| {
        let mut world = settled(3, 64, dice);
        for _ in 0..4 {
            world.run(20 * SECOND, &[Fault::Deletions], dice);
        }
        world.run(60 * SECOND, NONE, dice);
        assert_eq!(world.unheld(), Ranges::NONE, "{world:?}");
    });
}
