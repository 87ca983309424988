package board

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"muster/budget"
)

const (
	previewChars = 500
	reasonChars  = 200
	keptReasons  = 5
)

// Result is what a job hands back: the last event of its log.
type Result struct {
	State    State           `json:"state"` // a terminal one
	Text     string          `json:"text"`  // whole, of any size: what is over a message's size goes to the artifact store
	Error    string          `json:"error,omitempty"`
	Verified string          `json:"verified,omitempty"` // "true", "false" or ""
	Patch    Artifact        `json:"patch,omitzero"`     // what it changed, as a git patch (binary, full index)
	Stat     []FileStat      `json:"stat,omitempty"`     // what Patch changes, file by file (the first 100)
	Files    int             `json:"files,omitempty"`    // how many files Patch changes in all
	Usage    Usage           `json:"usage,omitzero"`
	Facts    json.RawMessage `json:"facts,omitempty"`
	Retry    bool            `json:"-"` // with State Failed: another attempt may succeed
}

// FileStat is one changed file: lines added and removed, -1 for binary.
type FileStat struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// storedResult is a Result in the log. JSON strings are Unicode, results are bytes: a text that is no UTF-8 is kept beside it.
type storedResult struct {
	Result
	Raw []byte `json:"text_base64,omitempty"`
}

func (r Result) stored() storedResult {
	if utf8.ValidString(r.Text) {
		return storedResult{Result: r}
	}
	raw := []byte(r.Text)
	r.Text = ""
	return storedResult{Result: r, Raw: raw}
}

func decodeResult(data []byte) (Result, error) {
	var s storedResult
	if err := json.Unmarshal(data, &s); err != nil {
		return Result{}, fmt.Errorf("decode result: %w", err)
	}
	if s.Raw != nil {
		s.Text = string(s.Raw)
	}
	return s.Result, nil
}

// preview is what the board shows of a result: its text, or the error of one that has none.
func (r Result) preview() string {
	if r.Text == "" {
		return budget.Preview(r.Error, previewChars)
	}
	if r.Error != "" {
		return budget.Preview(r.Error+": "+head(r.Text), previewChars)
	}
	return budget.Preview(head(r.Text), previewChars)
}

// head is enough of a text for its preview, the rest may be 50 MB of it; the mark keeps a head of blanks from looking whole.
func head(s string) string {
	const enough = 64 << 10
	if len(s) <= enough {
		return s
	}
	cut := enough
	for cut > enough-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// addReason keeps the reason of a failed attempt.
func (e *Entry) addReason(reason string) {
	e.Reasons = append(e.Reasons[:len(e.Reasons):len(e.Reasons)], budget.Preview(reason, reasonChars))
	if over := len(e.Reasons) - keptReasons; over > 0 {
		e.Reasons = e.Reasons[over:]
	}
}

// end fills what a terminal entry says of its result.
func (e *Entry) end(r Result, seq uint64) {
	e.State, e.ResultSeq, e.ResultLen = r.State, seq, int64(len(r.Text))
	e.Preview, e.Ended, e.Waits = r.preview(), now(), ""
	if r.Usage != (Usage{}) {
		e.Usage = r.Usage
	}
	if r.State != Killed {
		e.Killing = ""
	}
}
