// Package agents is who does a job.
//
// # The life of an attempt
//
// Runner.Run gets a lease from the board. It gives the job a tree (its own, or a shared one where nothing can be written),
// takes the profile (which tools, which mode, which words), and makes a tools.Set whose journal is the job's log. Then the
// job's steps run one after the other, or its model is asked: a turn, its tool calls, the next turn, until the model answers, a
// limit is spent, or the context ends with a cause (killed, stopping, lease lost, deadline). What changed in the tree is
// stored as a patch, every process is ended, the tree goes, and the result goes back to the board.
//
//	lease → tree → profile → tools → steps ┐
//	                               └ loop  ┴→ patch → result
//
// # What the log holds, and going on from it
//
// A model's turn is in the log ("model_turn") before any of its calls runs; each call has "tool_started" before and
// "tool_finished" after it; what the loop itself says to the model is there too ("message"). A new holder rebuilds the same conversation
// from these, so that no recorded turn is asked for again. A call that was started and has no receipt is reported to the
// model as interrupted; one that never started simply runs, and so does one that only reads or delegates (a child's id
// comes from its parent and the call, so that it is not made twice). After each turn that may have changed files, what has changed so
// far is stored as a patch ("checkpoint"), and the next holder's fresh tree begins with the newest. Steps begin anew with
// each attempt, in a tree that does.
//
// # Plans
//
// What a mode or a rule lets an agent do only when asked is put to a person (ask.go), unless one has allowed its like for the run. The job waits
// without a slot; a new holder finds the answer, or goes on waiting for it.
//
// A plan is a YAML file of jobs: prompts, or steps (tool calls without a model).
//
//	title: Review
//	caps: {preset: compact}          # also profile, model, mode, env, pool, priority, attempts, timeout, sandbox, rules: for all jobs
//	sandbox: {min: landlock, network: none, limits: {memory: 2GiB, processes: 200}}
//	jobs:
//	  - id: look                     # letters, digits, - and _
//	    foreach: {glob: "**/*.go", chunk: 20}      # or items: [a, b]
//	    steps:
//	      - tool: run_command
//	        args: {command: 'printf "%s\n" "${{ items }}" | xargs wc -l'}
//	        allow_failure: true      # else a failed step ends the job as failed
//	  - id: report
//	    after: [look]
//	    prompt: Sum up ${{ results.look }}
//
// Expressions: ${{ item }} (${{ items }}, one a line, with chunk), ${{ index }} (from 1) and ${{ results.ID }} of a job named in after; all
// parts of a foreach job count as that job. They are replaced by their text, a result cut at the cap output_chars with
// a notice. In the command of a run_command step an expression becomes a reference to an environment variable
// (${MUSTER_ITEM}, ${MUSTER_ITEMS}, ${MUSTER_INDEX}, ${MUSTER_RESULT_ID}) instead, so that no shell ever evaluates what a
// file name or another job said: write it within double quotes. The timeout counts from the submission.
//
// The sandbox of a job narrows what the host of its worker allows, and never widens it: min is the weakest rung to run on (package policy
// lists them; never off), network none or proxy, domains those of the host only (example.com, *.example.com), limits at most
// the host's: processes, memory, cpu_secs, file, open_files, tmp, disk, disk_files. What a job says lies over what the plan says, field by
// field. A worker whose machine is below min leaves the job to others, and the board says what it waits for; a job that asks for more
// than its worker's host allows fails. The rules (allow, ask, deny) are obeyed beside those of the host. Children have both from
// their parent.
//
// Everything about a plan is checked before anything is submitted; an error names file, line and reason.
package agents
