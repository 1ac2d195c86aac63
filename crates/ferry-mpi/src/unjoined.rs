//! Processes that a launcher has started together, and MPI has not joined: each would do the whole job.

/// Names the number of processes that a launcher has started: srun (srun(1)), and launchers that speak PMI-1.
const STARTED: [&str; 2] = ["SLURM_STEP_NUM_TASKS", "PMI_SIZE"];
/// Set by mpirun of Open MPI: its number of ranks is meant, although a launcher may have started mpirun.
const OWN: &str = "OMPI_COMM_WORLD_SIZE";

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

    #[test]
    fn processes_that_are_not_joined_do_not_begin() {
        let refused = |ranks, set: &[(&str, &str)]| {
            let value =
                |name: &str| set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned());
            refusal(ranks, value).is_some()
        };
        assert!(refused(1, &[("SLURM_STEP_NUM_TASKS", "4")]));
        assert!(refused(1, &[("PMI_SIZE", "2")]));
        assert!(!refused(4, &[("SLURM_STEP_NUM_TASKS", "4")]));
        assert!(!refused(1, &[("SLURM_STEP_NUM_TASKS", "1")]));
        assert!(!refused(1, &[("SLURM_STEP_NUM_TASKS", "4"), ("OMPI_COMM_WORLD_SIZE", "1")]));
        assert!(!refused(1, &[]));
    }
}
