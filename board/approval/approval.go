package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// Verdict is how a question was answered; "" while it is open.
type Verdict string

// The verdicts.
const (
	Approved Verdict = "approved"
	Denied   Verdict = "denied"
)

// Question is a call that a person is asked about.
type Question struct {
	Call string          // id of the call within its job
	Tool string          // that is called
	Args json.RawMessage // exactly
	Why  string          // what asks: a mode, a rule
}

// Hash binds an answer to a call.
func (q Question) Hash() string {
	sum := sha256.Sum256(slices.Concat([]byte(q.Tool), []byte{0}, q.Args))
	return hex.EncodeToString(sum[:])
}

// Approval is a question and, once it was answered, its answer.
type Approval struct {
	Run      string          `json:"run"`
	Job      string          `json:"job"`
	N        int             `json:"n"` // from 1, within the job
	Title    string          `json:"title"`
	Call     string          `json:"call"`
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"args"` // without secrets
	Hash     string          `json:"hash"` // of the tool and the exact arguments, SHA-256
	Why      string          `json:"why"`
	Worker   string          `json:"worker"`
	Asked    time.Time       `json:"asked"`
	Deadline time.Time       `json:"deadline"` // denied from then on
	Verdict  Verdict         `json:"verdict,omitempty"`
	By       string          `json:"by,omitempty"` // who answered, for people
	Reason   string          `json:"reason,omitempty"`
	Always   []string        `json:"always,omitempty"` // rules that the answer gave the run
	Answered time.Time       `json:"answered,omitzero"`
	Revision uint64          `json:"-"`
}

// Open says that it has no answer.
func (a Approval) Open() bool { return a.Verdict == "" }

// Answer is what a person says to a question.
type Answer struct {
	Approve bool
	By      string   // who
	Reason  string   // for the agent, and for the record
	Always  []string // with Approve: rules (see package tools/rules) that allow further calls of the run without asking
}

// Always is a rule that a person gave a run with an answer.
type Always struct {
	Rule string    `json:"rule"`
	By   string    `json:"by"`
	At   time.Time `json:"at"`
	Job  string    `json:"job"` // whose question it answered
	N    int       `json:"n"`
}

// The errors of questions and answers.
var (
	// ErrNobody: nobody is there whom this job could ask.
	ErrNobody = errors.New("nobody is there to ask")
	// ErrAnswered: the question has an answer, which stays.
	ErrAnswered = errors.New("it is answered already")
	// ErrNoQuestion: the job asks nothing, or nothing of that number.
	ErrNoQuestion = errors.New("no such question")
)
