"""The metrics that ncu.py reads, under the names that its data file uses."""

_SASS = "smsp__sass_thread_inst_executed_op_"
METRICS = {
    # requests and 32-byte sectors in L1's T-stage
    **{
        f"global_{op}_{what}": f"l1tex__t_{what}_pipe_lsu_mem_global_op_{op}.sum"
        for op in ("ld", "st", "atom", "red")
        for what in ("requests", "sectors")
    },
    **{
        f"local_{op}_{what}": f"l1tex__t_{what}_pipe_lsu_mem_local_op_{op}.sum"
        for op in ("ld", "st")
        for what in ("requests", "sectors")
    },
    "global_ld_hits": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
    # shared memory: as the data stage saw it, with arbitration, and as its instructions caused it
    **{
        f"shared_{op}_wavefronts": f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum"
        for op in ("ld", "st", "atom")
    },
    **{
        f"shared_{op}_conflicts": f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum"
        for op in ("ld", "st", "atom")
    },
    **{
        f"shared_{op}_own_wavefronts": f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum"
        for op in ("ld", "st", "atom")
    },
    **{f"shared_{op}_instructions": f"smsp__inst_executed_op_shared_{op}.sum" for op in ("ld", "st", "atom")},
    "shared_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "lsu_wavefronts": "l1tex__data_pipe_lsu_wavefronts.sum",
    "t_wavefronts": "l1tex__t_output_wavefronts.sum",
    # instructions
    "instructions": "smsp__inst_executed.sum",
    "thread_instructions": "smsp__thread_inst_executed.sum",
    "thread_instructions_on": "smsp__thread_inst_executed_pred_on.sum",
    **{
        f"pipe_{p}": f"smsp__inst_executed_pipe_{p}.sum"
        for p in ("alu", "fma", "fmaheavy", "fp64", "xu", "lsu", "cbu", "adu", "uniform")
    },
    **{
        f"thread_{op}": f"{_SASS}{op}_pred_on.sum"
        for op in (
            "fadd",
            "fmul",
            "ffma",
            "dadd",
            "dmul",
            "dfma",
            "integer",
            "conversion",
            "control",
            "memory",
            "bit",
            "misc",
            "inter_thread_communication",
        )
    },
    "branches": "smsp__sass_inst_executed_op_branch.sum",
    "branch_targets": "smsp__sass_branch_targets.sum",
    "branch_targets_uniform": "smsp__sass_branch_targets_threads_uniform.sum",
    "branch_targets_divergent": "smsp__sass_branch_targets_threads_divergent.sum",
    # L2 and DRAM
    **{f"l2_{op}_sectors": f"lts__t_sectors_srcunit_tex_op_{op}.sum" for op in ("read", "write", "red", "atom")},
    "l2_read_hits": "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    # time
    "nanoseconds": "gpu__time_duration.sum",
    "cycles": "sm__cycles_elapsed.max",
    "cycles_active": "sm__cycles_active.avg",
    "warps_active_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    **{
        f"stall_{s}": f"smsp__warp_issue_stalled_{s}_per_warp_active.pct"
        for s in (
            "long_scoreboard",
            "short_scoreboard",
            "mio_throttle",
            "lg_throttle",
            "math_pipe_throttle",
            "wait",
            "barrier",
            "membar",
            "branch_resolving",
            "not_selected",
            "no_instruction",
            "imc_miss",
            "drain",
            "dispatch_stall",
        )
    },
    # the launch
    "registers": "launch__registers_per_thread",
    "shared_static": "launch__shared_mem_per_block_static",
    "shared_dynamic": "launch__shared_mem_per_block_dynamic",
    **{f"limit_{x}": f"launch__occupancy_limit_{x}" for x in ("blocks", "registers", "shared_mem", "warps")},
    "waves": "launch__waves_per_multiprocessor",
    "occupancy_percent": "sm__maximum_warps_per_active_cycle_pct",
}
NAMES = {metric: name for name, metric in METRICS.items()}
