// Package tools is what an agent may do, and the one way to do it.
//
// A tool is a value in one file (a function that returns a Tool, made by define) and one word in one list (builtins). Its schema comes from its
// argument struct; its handler gets a Call with its powers and returns an Output: a text for the model and facts for the record. A handler never
// checks permissions or types, never journals and never clamps: that happens once, in Set.Invoke.
//
// # The life of a call
//
//	look up    the name among the tools of this agent; an unknown one is an error with the nearest names
//	check      mode, then the deny list, then the allow list, then rules that deny the whole tool: what they forbid is an error of class permission
//	validate   the arguments against the schema, before any I/O: defaults filled in, numbers clamped to their range (and said)
//	approve    the rules judge the arguments (package rules): what they deny is an error of class permission, what they allow is granted where the
//	           mode asks; what they or the mode want asked, Config.Ask puts to a person (ask.go), and what is approved is judged once more
//	           before it runs; what is refused, or nobody can answer, is an instruction, not a failure
//	journal    "tool_started" with the call's id as idempotency key
//	run        under a deadline; a panic becomes an error
//	clamp      text and error alike: plain text without secrets of at most OutputChars characters, fenced where it comes from outside (fence.go)
//	journal    "tool_finished" with the whole reply, also when the job was cancelled meanwhile
//
// # Promises
//
// Every output is bounded in characters, and every cut is announced with exact numbers and the call that gets the rest. Every error has one of five
// classes and says the next step. A tool that must fail is not shown; a tool that is not shown is refused again at the call. What was written to
// the journal as started and has no receipt is never repeated by this package.
//
// Edits are exact: a file keeps its encoding, its line ends one by one, its mode and its links, and what changed since this agent read it, by its hash, is
// a conflict. What apply_patch writes is written whole, all of its files or none, or not at all (package patch, workspace.Tree.Commit).
//
// No value of a secret (Config.Secrets, package secrets) leaves a Set: not in a text, not in facts, not in the journal. The files stay as they
// are, and so does what a command wrote and is kept of it; both come back through the clamp.
//
// # Memories and skills
//
// Memories are on the board, by project (board.Job.Project): what one agent saves another finds in a later run, on another machine. Skills are handed in
// by who makes the Set (package skills finds them), and listed in the system prompt, not in the definition of the tool. The files of a skill that lies in a
// folder of the user are copied into the scratch folder when it is first asked for, since an agent reads nothing outside of its own.
//
// A Set belongs to one attempt of one agent: it remembers what was read (so that a write over a file that changed meanwhile is a conflict),
// the todo list, and the background tasks. Close ends what still runs.
package tools
