//! Processes that a launcher has started together, and that MPI does not join: each would do the whole job, or MPI ends all of them.

/// Names the number of processes that a launcher has started: srun (srun(1)), and launchers that speak PMI-1.
const STARTED: [&str; 2] = [STEP, "PMI_SIZE"];
/// Set by srun for each process that it starts, but not for a batch script.
const STEP: &str = "SLURM_STEP_NUM_TASKS";
/// Index of the process among those that srun has started.
const INDEX: &str = "SLURM_PROCID";
/// Set by launchers by which MPI can join the processes: PMIx, which mpirun of Open MPI has too, PMI-1 and PMI-2.
const JOINED: [&str; 2] = ["PMIX_NAMESPACE", "PMI_RANK"];
/// Set by mpirun of Open MPI: its number of ranks is meant, although a launcher may have started mpirun.
const OWN: &str = "OMPI_COMM_WORLD_SIZE";

/// Returns advice to print before MPI begins, once for all processes that srun has started.
///
/// Open MPI 4 usually ends the processes that srun starts with neither PMIx nor PMI, after a text that does not name the option. An Open
/// MPI that was built for PMI-1 of Slurm begins all the same, and can't be told from the others, so this is no refusal.
pub(crate) fn advice(library: &str, variable: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    let is_first_of_step = variable(STEP).is_some() && variable(INDEX).is_some_and(|index| index == "0");
    let may_end = ["Open MPI v3.", "Open MPI v4."].iter().any(|version| library.starts_with(version));
    let can_join = JOINED.iter().any(|name| variable(name).is_some());
    (may_end && is_first_of_step && !can_join)
        .then_some("srun does not offer PMIx: if Open MPI does not begin, use `srun --mpi=pmix`, or mpirun")
}

/// Returns the reason not to begin. `variable` returns the value of a variable of the environment.
pub(crate) fn refusal(ranks: u32, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    if ranks > 1 || variable(OWN).is_some() {
        return None;
    }
    let number = |name: &&str| variable(name)?.parse::<u32>().ok();
    let started = STARTED.iter().filter_map(number).find(|&started| started > 1)?;
    Some(format!(
        "{started} processes were started, but MPI has not joined them: use `srun --mpi=pmix`, or mpirun of the same Open MPI"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(set: &[(&str, &str)], name: &str) -> Option<String> {
        set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn processes_that_are_not_joined_do_not_begin() {
        let refused = |ranks, set: &[(&str, &str)]| refusal(ranks, |name| value(set, name)).is_some();
        assert!(refused(1, &[("SLURM_STEP_NUM_TASKS", "4")]));
        assert!(refused(1, &[("PMI_SIZE", "2")]));
        assert!(!refused(4, &[("SLURM_STEP_NUM_TASKS", "4")]));
        assert!(!refused(1, &[("SLURM_STEP_NUM_TASKS", "1")]));
        assert!(!refused(1, &[("SLURM_STEP_NUM_TASKS", "4"), ("OMPI_COMM_WORLD_SIZE", "1")]));
        assert!(!refused(1, &[]));
    }

    #[test]
    fn the_first_process_of_a_step_without_pmix_gives_advice() {
        let advised = |library, set: &[(&str, &str)]| advice(library, |name| value(set, name)).is_some();
        let four = "Open MPI v4.1.4, package: Debian OpenMPI";
        let first = ("SLURM_PROCID", "0");
        assert!(advised(four, &[("SLURM_STEP_NUM_TASKS", "4"), first]));
        assert!(advised(four, &[("SLURM_STEP_NUM_TASKS", "1"), first]));
        assert!(!advised(four, &[("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "1")]));
        assert!(!advised(
            four,
            &[("SLURM_STEP_NUM_TASKS", "4"), first, ("PMIX_NAMESPACE", "slurm.pmix.1.0")]
        ));
        assert!(!advised(four, &[("SLURM_STEP_NUM_TASKS", "4"), first, ("PMI_RANK", "0")]));
        // A batch script, and no Slurm.
        assert!(!advised(four, &[("SLURM_NTASKS", "4"), first]));
        assert!(!advised(four, &[]));
        assert!(!advised("Open MPI v5.0.6", &[("SLURM_STEP_NUM_TASKS", "4"), first]));
        assert!(!advised("MPICH Version: 4.2", &[("SLURM_STEP_NUM_TASKS", "4"), first]));
    }
}
