// Package llm is a model behind one interface: a conversation goes in, one turn comes out.
//
// A model is named "provider:model". This build has one provider, script:
//
//	script:FILE            a file of turns on this machine
//	script:sha256:<hash>   the same file, from the artifact store, so that any worker can play it
//
// A script is YAML or JSON. It is a list of turns, each with conditions (when) and an answer; the first turn whose
// conditions all hold answers. Nothing that matches is an error, never a guess.
//
//	about: what this script shows
//	capture:                     # values found in the conversation, used as ${child} in text and args
//	  child: {call: spawn, re: 'id: (\S+)'}
//	turns:
//	  - when: {depth: 0, turn: 1}
//	    calls:
//	      - {id: spawn, tool: subagent, args: {task: look around, background: true}}
//	  - when: {depth: 0, last: {re: '(?i)started'}}
//	    calls:
//	      - {tool: agent_collect, args: {id: "${child}"}}
//	  - when: {depth: 0}
//	    text: "It said: ${last}"
//	  - text: nothing to see
//
// Conditions: name, title, profile (a plain text must be equal), depth (0 for a run's root), turn (exact) and from_turn
// (at least; the number of the turn that is asked for, from 1), attempt (of the same request, from 1), prompt (the first
// message), last (everything since the model's last turn: a plain text must be contained), last_tool, last_error. A text condition may also
// be a mapping of is, has, re and not.
//
// An answer has text (repeat: N writes it N times), calls (raw_args instead of args gives arguments as they are, broken ones
// too), stop (end, tool_use, length, refusal), usage, delay_ms, or error {kind: transient|dropped|permanent, text}.
// ${last}, ${prompt}, ${turn}, ${name}, ${title} and ${job} are always there; $${ stands for a plain ${.
//
// Promise: a script keeps no state. What it answers depends on the request alone, so that a job that another worker
// resumes goes on where it was, and the same script can play a parent and all its children at once.
package llm
