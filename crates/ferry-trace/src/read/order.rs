//! Names for scopes, times relative to the beginning, and sorting by time.

use super::program::Program;
use crate::model::{Nanos, Operation};

impl Program {
    pub(super) fn name_scopes(&mut self) {
        for scope in &mut self.scopes {
            if let Some(fiber) = scope.fiber.and_then(|fiber| self.fibers.get(fiber as usize)) {
                scope.name.clone_from(&fiber.name);
            }
        }
    }

    /// Makes times relative to the beginning, and returns the last one.
    pub(super) fn shift(&mut self, began: Nanos) -> Nanos {
        let mut last = 0;
        let mut shift = |time: &mut Nanos| {
            *time = time.saturating_sub(began);
            last = last.max(*time);
        };
        for scope in &mut self.scopes {
            shift(&mut scope.began);
            scope.ended.iter_mut().chain(&mut scope.cancelled).for_each(&mut shift);
        }
        for fiber in &mut self.fibers {
            shift(&mut fiber.began);
            fiber.ended.iter_mut().for_each(&mut shift);
        }
        for operation in &mut self.operations {
            shift(&mut operation.asked);
            let Operation { submitted, started, completed, taken, .. } = operation;
            [submitted, started, completed, taken].into_iter().flatten().for_each(&mut shift);
        }
        self.submissions.iter_mut().for_each(|submission| shift(&mut submission.at));
        self.enters
            .iter_mut()
            .for_each(|enter| [&mut enter.began, &mut enter.ended].into_iter().for_each(&mut shift));
        self.rests
            .iter_mut()
            .for_each(|rest| [&mut rest.began, &mut rest.ended].into_iter().for_each(&mut shift));
        self.pieces
            .iter_mut()
            .for_each(|piece| [&mut piece.began, &mut piece.ended].into_iter().for_each(&mut shift));
        self.samples.iter_mut().for_each(|sample| shift(&mut sample.at));
        last
    }

    pub(super) fn sort(&mut self) {
        let scopes = sort_by(&mut self.scopes, |scope| scope.began);
        let fibers = sort_by(&mut self.fibers, |fiber| fiber.began);
        let submissions = sort_by(&mut self.submissions, |submission| submission.at);
        sort_by(&mut self.operations, |operation| operation.asked);
        self.enters.sort_by_key(|enter| enter.began);
        self.rests.sort_by_key(|rest| rest.began);
        self.pieces.sort_by_key(|piece| piece.began);
        self.samples.sort_by_key(|sample| sample.at);
        let follow =
            |place: &mut u32, moved: &[u32]| *place = moved.get(*place as usize).copied().unwrap_or(*place);
        for scope in &mut self.scopes {
            scope.fiber.iter_mut().for_each(|place| follow(place, &fibers));
        }
        for fiber in &mut self.fibers {
            follow(&mut fiber.scope, &scopes);
        }
        for operation in &mut self.operations {
            operation.fiber.iter_mut().for_each(|place| follow(place, &fibers));
            operation.submission.iter_mut().for_each(|place| follow(place, &submissions));
        }
    }
}

/// Sorts a list, and returns each element's new index.
fn sort_by<T>(list: &mut Vec<T>, key: impl Fn(&T) -> Nanos) -> Vec<u32> {
    let mut numbered: Vec<(u32, T)> = (0..).zip(std::mem::take(list)).collect();
    numbered.sort_by_key(|(_, one)| key(one));
    let mut moved = vec![0; numbered.len()];
    for (place, (was, one)) in (0..).zip(numbered) {
        if let Some(slot) = moved.get_mut(was as usize) {
            *slot = place;
        }
        list.push(one);
    }
    moved
}
