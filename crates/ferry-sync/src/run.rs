//! A run from its beginning to its summary: plan, then print, record or perform.

mod begin;
mod outlet;

use std::convert::Infallible;
use std::fs::File;
use std::io::{BufReader, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ferry_copy::{Copier, Devices, Resume, Settings, Start};
use ferry_io::{Dir, Io};

use crate::decide::Comparison;
use crate::manifest::noting::Noting;
use crate::perform::{Missing, Performer, Trash, Way};
use crate::plan::{Reader, Verb};
use crate::request::{Acting, Disposal, MaxDelete, Refused, Request, Surroundings, Totals, Use};
use crate::select::Selector;
use crate::sink::{Batch, Planned, Sink};
use crate::walk::{Choices, Found, Once, Walk, content_permits};
use begin::Roots;
pub(crate) use begin::{place_of_trash, refuse_trash};
use outlet::{Printer, Recorder};

/// Makes the target equal to the source, or plans how.
///
/// # Errors
/// [`Refused`]; a failure of one path is reported to the observer instead.
pub fn run(request: &Request, to: Use, surroundings: &Surroundings<'_>) -> Result<Totals, Refused> {
    let (totals, io) = ferry_io::run(surroundings.io, async |io: Io| {
        // Without handlers a signal kills the process.
        io.stop_on_signals().ok();
        let devices = Arc::new(Devices::new(io.clone()));
        let sync = sync((&io, &devices), request, to, surroundings);
        let done = within(&io, request.acting.time_limit, sync).await;
        unless_stopped(&io, &devices, done)
    })?;
    totals.map(|totals| Totals { io, ..totals })
}

/// Refuses the trees that [`run`] refuses before it changes anything.
///
/// # Errors
/// [`Refused`]
pub fn check(request: &Request, io: &ferry_io::Options) -> Result<(), Refused> {
    let checked = ferry_io::run(io, async |io: Io| {
        let roots = open(&io, request).await?;
        roots.list(&request.target).await
    });
    checked?.0
}

/// Opens both roots, unless the request is refused.
async fn open(io: &Io, request: &Request) -> Result<Roots, Refused> {
    let roots = Roots::open(io, &request.source, &request.target).await?;
    if request.deletes && !request.allows_empty && roots.is_source_empty().await? {
        return Err(Refused::Empty { source_path: request.source.clone() });
    }
    Ok(roots)
}

async fn sync(
    (io, devices): (&Io, &Arc<Devices>),
    request: &Request,
    to: Use,
    surroundings: &Surroundings<'_>,
) -> Result<Totals, Refused> {
    let performs = matches!(to, Use::Perform);
    let mut roots = open(io, request).await?;
    let selector = Selector::new(request.selection.clone())?;
    if performs {
        roots.make_target(&request.target).await?;
    }
    let rules = roots.rules(request.comparison, request.keeps_newer).await;
    let trash = match &request.acting.disposal {
        Disposal::Trash(Some(folder)) => roots.trash(io, (folder, &request.target), performs).await?,
        Disposal::Trash(None) | Disposal::Remove => None,
    };
    // A folder is copied as a whole only if everything in it takes part.
    let whole_trees = !selector.is_active() && request.list.is_none() && !request.each_entry;
    let choices = Choices {
        rules,
        deletes: request.deletes,
        is_part: request.acting.is_part,
        expands: !performs || !whole_trees,
        selector,
        content_permits: content_permits(io),
        digest: surroundings.manifest.as_ref().map(|manifest| manifest.algorithm()),
        once: Once::default(),
        list: request.list.clone(),
        gate: surroundings.gate.clone(),
        devices: Arc::clone(devices),
        trash,
        source_path: request.source.clone(),
        target_path: request.target.clone(),
    };
    devices.watch(&roots.source, roots.target.as_ref());
    let (observer, sides) = (&*surroundings.observer, (roots.source.clone(), roots.target.clone()));
    let mut walk =
        Walk::new(io, choices, observer, sides).await.map_err(|kind| Refused::of(&request.source, &kind))?;
    walk.explain_to(surroundings.explain);
    walk.count_in(Arc::clone(&surroundings.progress));
    walk.note_in(surroundings.manifest.clone());
    let root = match request.acting.is_part {
        true => None,
        false => roots.root_action(&rules).await,
    };
    let planning = Planning { walk, root, limit: request.max_delete };
    match to {
        Use::Show => {
            let mut sink = Printer::new(surroundings.tell);
            let planned = planning.run(&mut sink).await.map_err(Refused::Aside)?;
            Ok(Totals { done: sink.done, ..planned.totals(io, devices) })
        }
        Use::Record(file) => {
            let versions = roots.versions(&request.target).await?;
            let mut sink =
                Recorder::begin(file, request, versions, surroundings.tell).map_err(Refused::PlanFile)?;
            let planned = planning.run(&mut sink).await.map_err(Refused::PlanFile)?;
            let totals = planned.totals(io, devices);
            // A plan that lacks something has no last line, so that it is not applied.
            let is_whole = totals.too_many.is_none() && !totals.is_cut_short();
            let done = sink.end(is_whole).map_err(Refused::PlanFile)?;
            Ok(Totals { done, ..totals })
        }
        Use::Perform => {
            let resume = match request.comparison {
                Comparison::Content => Resume::Content,
                Comparison::SizeAndTime | Comparison::Size => Resume::Identity,
            };
            let atomic = request.keeps_newer || request.comparison == Comparison::Size;
            let acting = &request.acting;
            let stage = Stage { io, devices, roots: &roots, acting, atomic, resume, surroundings };
            let paths = (request.source.clone(), request.target.clone());
            stage.perform(paths, whole_trees, async |sink| planning.run(sink).await).await
        }
    }
}

/// A walk, and what surrounds it.
struct Planning<'a> {
    walk: Walk<'a>,
    /// Action on the roots themselves.
    root: Option<Planned>,
    limit: MaxDelete,
}

/// Results of planning.
#[derive(Debug, Clone, Copy, Default)]
struct Ended {
    found: Found,
    too_many: Option<(u64, u64)>,
    leaves_doubts: bool,
}

impl Ended {
    fn totals(self, io: &Io, devices: &Devices) -> Totals {
        let lost = devices.lost();
        Totals {
            failed: self.found.failed,
            too_many: self.too_many,
            interrupted: io.is_stopped() && lost.is_none(),
            lost,
            ..Totals::default()
        }
    }
}

impl Planning<'_> {
    /// Passes all actions to a sink: what is copied and changed, what is deleted, and the roots.
    async fn run<S: Sink>(mut self, sink: &mut S) -> std::io::Result<Ended> {
        let is_new = self.root.as_ref().is_some_and(|root| root.action.verb == Verb::Create);
        let mut root = self.root.map(|root| Batch { folder: PathBuf::new(), actions: vec![root] });
        if let Some(batch) = root.take_if(|_| is_new) {
            sink.take(batch).await?;
        }
        self.walk.run(sink).await?;
        let found = self.walk.found();
        let limit = self.limit.limit(found.targets);
        let leaves_doubts = self.walk.leaves_doubts();
        let too_many = (found.deletions > limit).then_some((found.deletions, limit));
        if found.failed > found.unhashed {
            sink.note_failures();
        }
        sink.note_run_marks(self.walk.take_run_marks());
        sink.end_changes(self.walk.takes(too_many.is_none())).await;
        if too_many.is_none() {
            self.walk.delete(sink).await?;
        }
        // Deletions may have failed, too.
        let found = self.walk.found();
        // Last of all: a default ACL that the root gets must not pass to entries that are made in it.
        if let Some(batch) = root {
            sink.take(batch).await?;
        }
        Ok(Ended { found, too_many, leaves_doubts })
    }
}

/// What actions are performed with.
struct Stage<'a> {
    io: &'a Io,
    devices: &'a Arc<Devices>,
    roots: &'a Roots,
    acting: &'a Acting,
    /// Set if a file gets its name only when it is complete: one that a kill leaves incomplete would count as newer, or as
    /// equal to a source of its size.
    atomic: bool,
    /// Comparison of what an interrupted run has copied of large files.
    resume: Resume,
    surroundings: &'a Surroundings<'a>,
}

impl Stage<'_> {
    /// Performs the actions that `plan` passes to its sink.
    async fn perform(
        &self,
        (source_path, target_path): (PathBuf, PathBuf),
        whole_trees: bool,
        plan: impl AsyncFnOnce(&mut Performer<'_>) -> std::io::Result<Ended>,
    ) -> Result<Totals, Refused> {
        let Surroundings { progress, observer, tell, manifest, gate, .. } = self.surroundings;
        let Acting { in_place, fsync, verify, bandwidth, .. } = *self.acting;
        let (resume, gate) = (Some(self.resume), gate.clone());
        let digest = manifest.as_ref().map(|manifest| manifest.algorithm());
        let atomic = self.atomic;
        let devices = Some(Arc::clone(self.devices));
        let settings = Settings { in_place, fsync, verify, atomic, resume, digest, bandwidth, gate, devices };
        let observer = match manifest {
            Some(manifest) => {
                let (inner, manifest) = (Arc::clone(observer), Arc::clone(manifest));
                Arc::new(Noting::new(inner, manifest, target_path.clone()))
            }
            None => Arc::clone(observer),
        };
        let copier = Copier::new(self.io.clone(), settings, Arc::clone(progress), observer);
        let (source, Some(target)) = (&self.roots.source, &self.roots.target) else {
            return Ok(Totals::default());
        };
        let start = |from: &Dir, from_path: &Path, is_new| Start {
            source: from.clone(),
            target: target.clone(),
            source_path: from_path.to_owned(),
            target_path: target_path.clone(),
            is_new,
        };
        let opened = |kind| Refused::of(&target_path, &kind);
        let main = start(source, &source_path, self.roots.is_new);
        let main = copier.start(main).await.map_err(opened)?;
        let missing = if self.acting.is_part { Missing::Keep } else { Missing::Refuse };
        let main = Way::new(&copier, main, (source_path.clone(), target_path.clone()), missing);
        let within = copier.start(start(target, &target_path, false)).await.map_err(opened)?;
        let within = Way::new(&copier, within, (target_path.clone(), target_path.clone()), Missing::Refuse);
        let trash = match &self.acting.disposal {
            Disposal::Remove => None,
            Disposal::Trash(folder) => {
                let place = begin::place_of_trash(self.io, target, &target_path, folder.as_deref()).await?;
                let now = self.io.real_time();
                Some(Trash::new(&copier, (target.clone(), target_path.clone()), place, now))
            }
        };
        let mut sink = Performer::new(&copier, (main, within), trash, source.clone(), whole_trees, *tell);
        sink.note_in(manifest.clone());
        let ended = plan(&mut sink).await;
        let spared = sink.spared;
        let (done, trash) = sink.finish().await;
        let summary = copier.end().await;
        let Ended { found, too_many, leaves_doubts } = ended.map_err(Refused::Aside)?;
        Ok(Totals {
            done,
            failed: found.failed + summary.failed,
            bytes: summary.bytes(),
            interrupted: summary.interrupted,
            out_of_space: summary.out_of_space,
            lost: summary.lost,
            too_many,
            spared,
            leaves_doubts,
            trash,
            io: ferry_io::Stats::default(),
        })
    }
}

/// Performs a plan. Each action whose source or target has changed since is refused.
///
/// # Errors
/// [`Refused`]; a plan that is damaged or incomplete is refused before anything is changed.
pub fn apply(plan: &File, acting: &Acting, surroundings: &Surroundings<'_>) -> Result<Totals, Refused> {
    let reopened = |mut file: &File| {
        file.rewind()?;
        file.try_clone().map(BufReader::new)
    };
    let (mut reader, header) = Reader::begin(reopened(plan).map_err(Refused::PlanFile)?)?;
    while reader.next_action()?.is_some() {}
    let (mut reader, _) = Reader::begin(reopened(plan).map_err(Refused::PlanFile)?)?;
    let (source, target) = (header.source.0, header.target.0);
    let (totals, io) = ferry_io::run(surroundings.io, async |io: Io| {
        io.stop_on_signals().ok();
        let devices = Arc::new(Devices::new(io.clone()));
        let applied = async {
            let mut roots = Roots::open(&io, &source, &target).await?;
            roots.refuse_others(header.source_root, header.target_root, &target).await?;
            roots.make_target(&target).await?;
            devices.watch(&roots.source, roots.target.as_ref());
            let (atomic, resume) = (false, Resume::Identity);
            let (io, devices, roots) = (&io, &devices, &roots);
            let stage = Stage { io, devices, roots, acting, atomic, resume, surroundings };
            stage
                .perform((source.clone(), target.clone()), false, async |sink| {
                    outlet::pass_on(&mut reader, sink).await.map(|()| Ended::default())
                })
                .await
        };
        let done = within(&io, acting.time_limit, applied).await;
        unless_stopped(&io, &devices, done)
    })?;
    totals.map(|totals| Totals { io, ..totals })
}

/// Awaits a run, and stops it when its time is up.
async fn within<T>(io: &Io, limit: Option<Duration>, run: impl Future<Output = T>) -> T {
    // Boxed: each of the two ways would hold its state.
    let run = Box::pin(run);
    let Some(limit) = limit else { return run.await };
    let clock = async || {
        // A cancelled sleep is an error: the run has ended before.
        if ferry_io::sleep(limit).await.is_ok() {
            io.stop();
        }
        Ok::<(), Infallible>(())
    };
    let ended = ferry_io::scope(async |scope| {
        scope.spawn(clock());
        let done = run.await;
        scope.cancel();
        Ok(done)
    });
    match ended.await {
        Ok(done) => done,
        Err(never) => match never {},
    }
}

/// Returns the result of a run; of one that was stopped while it began, only that.
pub(crate) fn unless_stopped(
    io: &Io,
    devices: &Devices,
    result: Result<Totals, Refused>,
) -> Result<Totals, Refused> {
    match result {
        Err(_) if io.is_stopped() => {
            let lost = devices.lost();
            Ok(Totals { interrupted: lost.is_none(), lost, ..Totals::default() })
        }
        result => result,
    }
}
