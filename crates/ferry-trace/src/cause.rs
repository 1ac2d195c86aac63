//! Classification of task work by its call chain.
//!
//! Function names are those of x86, the only architecture examined. An unknown chain is [`Cause::Unknown`].

use crate::model::Cause;

/// Returns the cause for a call chain, innermost function first. `has_slept` is true if the thread has slept in its
/// current call of io_uring_enter(2).
#[must_use]
pub fn cause(chain: &[String], has_slept: bool) -> Cause {
    let has = |ending: &str| chain.iter().any(|function| function.ends_with(ending));
    let is_local = chain.first().is_some_and(|function| function.contains("local_work"));
    // In DEFER mode only GETEVENTS runs task work in that call, even right after submission.
    if has("io_cqring_wait") || is_local && has("sys_io_uring_enter") {
        return if has_slept { Cause::GetEventsSlept } else { Cause::GetEvents };
    }
    if has("reschedule_ipi") || has("sysvec_call_function") || has("sysvec_call_function_single") {
        Cause::Ipi
    } else if has("exc_page_fault") {
        Cause::PageFault
    } else if has("apic_timer_interrupt") {
        Cause::Tick
    } else if has("common_interrupt") {
        Cause::DeviceInterrupt
    } else if has("do_syscall_64") {
        Cause::SystemCall
    } else {
        Cause::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::cause;
    use crate::model::Cause;

    fn chain(text: &str) -> Vec<String> {
        text.split(" < ").map(str::to_owned).collect()
    }

    /// Chains recorded on Linux 6.18 with direct reads on rings in each mode.
    #[test]
    fn real_chains_tell_their_cause() {
        for (text, expected) in [
            (
                "tctx_task_work_run < tctx_task_work < task_work_run < io_run_task_work < io_cqring_wait < \
                 __do_sys_io_uring_enter < do_syscall_64 < entry_SYSCALL_64_after_hwframe",
                Cause::GetEvents,
            ),
            (
                "__io_run_local_work < io_cqring_wait < __do_sys_io_uring_enter < do_syscall_64 < \
                 entry_SYSCALL_64_after_hwframe",
                Cause::GetEvents,
            ),
            (
                "__io_run_local_work < __do_sys_io_uring_enter < do_syscall_64 < entry_SYSCALL_64_after_hwframe",
                Cause::GetEvents,
            ),
            (
                "tctx_task_work_run < tctx_task_work < task_work_run < get_signal < arch_do_signal_or_restart < \
                 irqentry_exit_to_user_mode < asm_sysvec_reschedule_ipi",
                Cause::Ipi,
            ),
            (
                "tctx_task_work_run < tctx_task_work < task_work_run < get_signal < arch_do_signal_or_restart < \
                 exit_to_user_mode_loop < do_syscall_64 < entry_SYSCALL_64_after_hwframe",
                Cause::SystemCall,
            ),
            (
                "tctx_task_work_run < tctx_task_work < task_work_run < get_signal < arch_do_signal_or_restart < \
                 irqentry_exit_to_user_mode < asm_sysvec_apic_timer_interrupt",
                Cause::Tick,
            ),
            (
                "tctx_task_work_run < tctx_task_work < task_work_run < get_signal < arch_do_signal_or_restart < \
                 irqentry_exit_to_user_mode < asm_common_interrupt",
                Cause::DeviceInterrupt,
            ),
            // From document 002; not seen in the recordings.
            ("tctx_task_work < task_work_run < exc_page_fault", Cause::PageFault),
            ("0xffffffff81000000", Cause::Unknown),
            ("", Cause::Unknown),
        ] {
            assert_eq!(cause(&chain(text), false), expected, "{text}");
            let slept = if expected == Cause::GetEvents { Cause::GetEventsSlept } else { expected };
            assert_eq!(cause(&chain(text), true), slept, "{text}");
        }
    }
}
