package board

import (
	"encoding/json"
	"fmt"
	"slices"

	"muster/board/secrets"
	"muster/budget"
)

// secretsOf is what is not to be seen of a job: the deployment's secrets, and what looks like a credential in the job's own environment.
func (b *Board) secretsOf(j Job) *secrets.Redactor {
	var env []string
	for name, v := range j.Env {
		env = append(env, name+"="+v)
	}
	values := secrets.Credentials(env)
	if r, err := b.secrets.With(values); err == nil && len(values) > 0 {
		return r
	}
	return b.secrets
}

// Secrets is what is not to be seen of this job, for its tools.
func (l *Lease) Secrets() *secrets.Redactor { return l.secrets }

// Shown is a specification as people may see it. The log keeps it as it was submitted, since whoever does the job needs all of it.
func (b *Board) Shown(j Job) Job {
	r := b.secretsOf(j)
	data, err := encode(j)
	var shown Job
	if err != nil || json.Unmarshal(r.JSON(data), &shown) != nil {
		return Job{ID: j.ID, Run: j.Run, Title: r.String(j.Title)} // never: what was encoded is decoded
	}
	for name := range j.Env {
		if secrets.IsCredential(name) { // whatever its length
			shown.Env[name] = "[redacted " + name + "]"
		}
	}
	return shown
}

// ShownEvent is an event as people may see it: only a specification is kept with its secrets.
func (b *Board) ShownEvent(ev Event) Event {
	if ev.Kind != kindSpec {
		return ev
	}
	var j Job
	err := json.Unmarshal(ev.Data, &j)
	if err == nil {
		ev.Data, err = encode(b.Shown(j))
	}
	if err != nil {
		ev.Data = nil // no specification
	}
	return ev
}

// hide takes secrets out of what nobody needs to do the job, and refuses them in what others find it by: it could not be found otherwise.
func (b *Board) hide(j *Job) error {
	r := b.secretsOf(*j)
	j.Title, j.Steps = r.String(j.Title), slices.Clone(j.Steps)
	for i := range j.Steps {
		j.Steps[i].Title = r.String(j.Steps[i].Title)
	}
	for what, s := range map[string]string{"name": j.Name, "run": j.Run, "pool": j.Pool, "profile": j.Profile} {
		if clean := r.String(s); clean != s {
			return fmt.Errorf("submit %s: its %s holds a secret: %s", r.String(j.label()), what, clean)
		}
	}
	return nil
}

// without is the entry without secrets.
func (e Entry) without(r *secrets.Redactor) Entry {
	if r == nil {
		return e
	}
	e.Title, e.Preview, e.Waits = hushed(r, e.Title, titleChars), hushed(r, e.Preview, previewChars), hushed(r, e.Waits, reasonChars)
	e.Killing, e.LastTool = r.String(e.Killing), hushed(r, e.LastTool, toolChars)
	e.Reasons = slices.Clone(e.Reasons)
	for i, reason := range e.Reasons {
		e.Reasons[i] = hushed(r, reason, reasonChars)
	}
	return e
}

// hushed is a one-line text without secrets. What a preview leaves out of a text may have stood within one.
func hushed(r *secrets.Redactor, s string, chars int) string {
	if clean := r.String(s); clean != s {
		return budget.Preview(clean, chars)
	}
	return s
}

// without is the result without secrets. Its patch stays what it is: those are the files.
func (r Result) without(s *secrets.Redactor) Result {
	r.Text, r.Error = s.String(r.Text), s.String(r.Error)
	return r
}
