package board

import (
	"encoding/json"
	"slices"
	"time"

	"muster/board/policy"
	"muster/budget"
)

// State is where a job is in its life; see doc.go for the drawing and transitions for the table.
type State string

const (
	Blocked State = "blocked" // waits for After, or for a place among its siblings
	Queued  State = "queued"
	Running State = "running"
	Waiting State = "waiting" // for children, an approval, a gate; holds no slot
	Done    State = "done"
	Partial State = "partial"
	Failed  State = "failed"
	Killed  State = "killed"
	Lost    State = "lost"
	Denied  State = "denied"
)

// transitions is every change of state there is. A state that is not a key is terminal and never changes.
var transitions = map[State][]State{
	Blocked: {Queued, Failed, Killed, Lost},
	Queued:  {Running, Failed, Killed, Lost},
	Running: {Running, Waiting, Queued, Done, Partial, Failed, Killed, Lost, Denied},
	Waiting: {Running, Queued, Done, Partial, Failed, Killed, Lost, Denied},
}

// Terminal reports whether a job in this state has ended for good.
func (s State) Terminal() bool {
	switch s {
	case Done, Partial, Failed, Killed, Lost, Denied:
		return true
	}
	return false
}

// may reports whether an entry in state s may be written with state to; an entry that lives may also be written as it is.
func (s State) may(to State) bool {
	next, lives := transitions[s]
	return lives && (s == to || slices.Contains(next, to))
}

// held reports whether a worker holds a job in this state.
func (s State) held() bool { return s == Running || s == Waiting }

// Job is the specification of a job: the first event of its log. It never changes after Submit.
type Job struct {
	ID       string            `json:"id"`               // UUIDv7; Submit makes one when empty
	Run      string            `json:"run"`              // the run it belongs to; Submit takes the id when empty
	Parent   string            `json:"parent,omitempty"` // id of the parent job; empty for a run's roots
	Again    string            `json:"again,omitempty"`  // id of the ended job that this one does again
	Path     []string          `json:"path,omitempty"`   // ids of the ancestors, root first, parent last
	Name     string            `json:"name,omitempty"`   // the id in a plan
	Title    string            `json:"title"`
	Profile  string            `json:"profile,omitempty"`
	Prompt   string            `json:"prompt,omitempty"`
	Steps    []Step            `json:"steps,omitempty"` // tool calls without a model, instead of Prompt
	Model    string            `json:"model,omitempty"` // provider:model; script:sha256:<artifact> for scripts
	Mode     string            `json:"mode,omitempty"`
	Caps     budget.Choice     `json:"caps,omitzero"`
	Env      map[string]string `json:"env,omitempty"`      // for its commands, beside the allow-list
	Base     Base              `json:"base,omitzero"`      // the files it works on
	Project  string            `json:"project,omitempty"`  // whose memories its agents share; decided by who submits
	Sandbox  policy.Sandbox    `json:"sandbox,omitzero"`   // of its commands: narrows what a worker's host allows
	Rules    policy.Rules      `json:"rules,omitzero"`     // for its tool calls, beside those of a worker's host
	Pool     string            `json:"pool,omitempty"`     // default "default"
	Priority Priority          `json:"priority,omitempty"` // default "normal"
	After    []string          `json:"after,omitempty"`    // job ids that must be done first; any that ends otherwise fails this one
	Deadline time.Time         `json:"deadline,omitzero"`
	Attempts int               `json:"attempts,omitempty"`   // max attempts, default 3
	Detach   bool              `json:"detach,omitempty"`     // outlives its parent
	AskFor   time.Duration     `json:"ask_for_ns,omitempty"` // how long a question to a person waits for its answer; 0: nobody is there
	Created  time.Time         `json:"created"`
}

// Step is one tool call of a job without a model. Args may hold ${{ item }} and ${{ results.<name> }} (see package agents).
type Step struct {
	Title        string          `json:"title,omitempty"`
	Tool         string          `json:"tool"`
	Args         json.RawMessage `json:"args,omitempty"`
	AllowFailure bool            `json:"allow_failure,omitempty"` // a failure does not end the job
}

// Base names the files a job starts from. Zero: an empty workspace.
type Base struct {
	InPlace string   `json:"in_place,omitempty"` // the folder itself, on the submitter's machine (by flag only)
	Commit  string   `json:"commit,omitempty"`   // snapshot commit
	Pack    Artifact `json:"pack,omitzero"`      // git bundle that holds Commit, in the artifact store
	Origin  string   `json:"origin,omitempty"`   // where it was taken from, for people: host:/path
}

// Artifact names content in the artifact store by its SHA-256 (hex). Zero: none.
type Artifact struct {
	SHA256 string `json:"sha256,omitempty"`
	Size   int64  `json:"size,omitempty"` // bytes
}

// Priority orders the queue of a pool: "high" before "normal" before "low".
type Priority string

const normalPriority Priority = "normal"

// priorities lists every priority, first the one that is served first.
var priorities = [...]Priority{"high", normalPriority, "low"}

// Entry is the state of a job on the board: small (under 4 KiB), one a job, changed by compare-and-set only.
type Entry struct {
	ID        string        `json:"id"`
	Run       string        `json:"run"`
	Parent    string        `json:"parent,omitempty"`
	Again     string        `json:"again,omitempty"`
	Path      []string      `json:"path,omitempty"`
	Name      string        `json:"name,omitempty"`
	Title     string        `json:"title"`
	Profile   string        `json:"profile,omitempty"`
	Pool      string        `json:"pool"`
	Priority  Priority      `json:"priority"`
	State     State         `json:"state"`
	Epoch     uint64        `json:"epoch"`               // holders so far
	Attempt   int           `json:"attempt"`             // failures so far + 1 once it runs
	Pointer   uint64        `json:"pointer"`             // number of the newest queue pointer
	Worker    string        `json:"worker,omitempty"`    // that holds it; queued: that fell silent with it
	Sandbox   string        `json:"sandbox,omitempty"`   // rung of the commands at its newest holder: "off" is no confinement at all
	Waits     string        `json:"waits,omitempty"`     // queued: why the first worker that it came to could not do it; waiting: for which question
	Killing   string        `json:"killing,omitempty"`   // kill flag: the reason; set, no claim starts it
	After     []string      `json:"after,omitempty"`     // what it waits for; the first maxAfter
	AfterAll  int           `json:"after_all,omitempty"` // how many After has in the specification, when that is more
	Live      int           `json:"live,omitempty"`      // blocked: how many live siblings its parent allows; 0 means no such limit
	Deadline  time.Time     `json:"deadline,omitzero"`   // the earliest of its own and its ancestors'
	Created   time.Time     `json:"created"`
	Queued    time.Time     `json:"queued,omitzero"`
	Delay     time.Duration `json:"delay_ns,omitempty"` // queued for a retry: how long after Queued its pointer follows
	Started   time.Time     `json:"started,omitzero"`   // first claim
	Claimed   time.Time     `json:"claimed,omitzero"`   // newest claim
	Ended     time.Time     `json:"ended,omitzero"`
	Updated   time.Time     `json:"updated"`
	Heard     time.Time     `json:"heard,omitzero"` // newest write of a holder
	Usage     Usage         `json:"usage,omitzero"`
	TodoDone  int           `json:"todo_done,omitempty"`
	TodoTotal int           `json:"todo_total,omitempty"`
	LastTool  string        `json:"last_tool,omitempty"`
	Reasons   []string      `json:"reasons,omitempty"` // one a failed attempt, each at most 200 characters, the last 5
	Preview   string        `json:"preview,omitempty"` // at most 500 characters
	ResultSeq uint64        `json:"result_seq,omitempty"`
	ResultLen int64         `json:"result_bytes,omitempty"`
	MaxTries  int           `json:"max_attempts"`
	Detach    bool          `json:"detach,omitempty"`
	Revision  uint64        `json:"-"` // of the entry in its bucket
}

// Usage is what a job spent so far.
type Usage struct {
	InputTokens  int64 `json:"input_tokens,omitempty"`
	OutputTokens int64 `json:"output_tokens,omitempty"`
	MicroDollars int64 `json:"micro_dollars,omitempty"`
	Turns        int64 `json:"turns,omitempty"`
	ToolCalls    int64 `json:"tool_calls,omitempty"`
}
