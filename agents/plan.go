package agents

import (
	"encoding/json"
	"errors"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"muster/agents/document"
	"muster/agents/llm"
	"muster/board"
	"muster/board/policy"
	"muster/budget"
	"muster/tools"
	"muster/tools/rules"
)

const (
	maxPlan  = 256 << 10 // bytes of a plan file
	maxParts = 1_000     // parts of one foreach
	maxJobs  = 5_000     // jobs of a run
)

// Plan is a DAG of jobs read from YAML. It was checked whole.
type Plan struct {
	Title string

	dir  string // of the plan file: scripts are named relative to it
	doc  *document.Doc
	all  settings
	jobs []planJob // as written
	sort []int     // indexes of jobs, each after those it comes after
}

type planFile struct {
	Title    string `yaml:"title"`
	settings `yaml:",inline"`
	Jobs     []planJob `yaml:"jobs"`
}

// settings stand at the top for every job, and at a job for itself.
type settings struct {
	Profile  string            `yaml:"profile"`
	Model    string            `yaml:"model"`
	Mode     string            `yaml:"mode"`
	Caps     document.Value    `yaml:"caps"`
	Env      map[string]string `yaml:"env"`
	Pool     string            `yaml:"pool"`
	Priority string            `yaml:"priority"`
	Attempts int               `yaml:"attempts"`
	Timeout  string            `yaml:"timeout"`
	Sandbox  policy.Sandbox    `yaml:"sandbox"`
	Rules    policy.Rules      `yaml:"rules"`

	caps    budget.Choice
	timeout time.Duration
}

type planJob struct {
	ID       string     `yaml:"id"`
	Title    string     `yaml:"title"`
	Prompt   string     `yaml:"prompt"`
	Steps    []planStep `yaml:"steps"`
	After    []string   `yaml:"after"`
	Foreach  *foreach   `yaml:"foreach"`
	settings `yaml:",inline"`
}

type planStep struct {
	Title        string         `yaml:"title"`
	Tool         string         `yaml:"tool"`
	Args         document.Value `yaml:"args"`
	AllowFailure bool           `yaml:"allow_failure"`
}

type foreach struct {
	Items []string `yaml:"items"`
	Glob  string   `yaml:"glob"`
	Chunk int      `yaml:"chunk"`
}

// ParsePlan reads a plan; an error names file, line and reason, and nothing was submitted.
func ParsePlan(name string, data []byte) (*Plan, error) {
	var f planFile
	doc, err := document.Read(name, data, maxPlan, &f)
	if err != nil {
		return nil, err
	}
	p := &Plan{Title: f.Title, dir: filepath.Dir(name), doc: doc, all: f.settings, jobs: f.Jobs}
	profiles, err := Profiles()
	if err != nil {
		return nil, err
	}
	c := &planCheck{plan: p, profiles: profiles, byID: map[string]int{}}
	c.settings(nil, &p.all)
	if len(p.jobs) == 0 {
		c.say([]any{"jobs"}, "a plan needs jobs")
	}
	for i := range p.jobs {
		c.identity(i)
	}
	for i := range p.jobs {
		c.job(i)
	}
	if len(c.wrong) == 0 {
		c.order()
	}
	if err := errors.Join(c.wrong...); err != nil {
		return nil, err
	}
	return p, nil
}

// planCheck collects what is wrong with a plan.
type planCheck struct {
	plan     *Plan
	profiles []Profile
	byID     map[string]int
	wrong    []error
}

func (c *planCheck) say(at []any, format string, a ...any) {
	c.wrong = append(c.wrong, c.plan.doc.Errorf(at, format, a...))
}

var (
	jobID   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) })
	envName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })
	poolOK  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) })
)

// identity checks the id of a job against those before it.
func (c *planCheck) identity(i int) {
	id, at := c.plan.jobs[i].ID, []any{"jobs", i, "id"}
	if !jobID().MatchString(id) {
		c.say(at, "job id %q: letters, digits, - and _, at most 64, beginning with a letter or digit", id)
		return
	}
	if first, ok := c.byID[id]; ok {
		c.say(at, "job id %q is taken (line %d)", id, c.plan.doc.Line("jobs", first, "id"))
		return
	}
	for other := range c.byID {
		if envID(other) == envID(id) {
			c.say(at, "job ids %q and %q would share the variable %sRESULT_%s: rename one", other, id, envPrefix, envID(id))
		}
	}
	c.byID[id] = i
}

// settings checks the fields that a plan and a job share.
func (c *planCheck) settings(at []any, s *settings) {
	say := func(field, format string, a ...any) { c.say(append(slices.Clone(at), field), format, a...) }
	if s.Profile != "" {
		if _, err := profileNamed(s.Profile, c.profiles); err != nil {
			say("profile", "%v", err)
		}
	}
	if s.Mode != "" && !slices.Contains(tools.Modes(), s.Mode) {
		say("mode", "unknown mode %q: there are %s", s.Mode, strings.Join(tools.Modes(), ", "))
	}
	if s.Model != "" && !strings.Contains(s.Model, ":") {
		say("model", "model %q: write provider:model, such as script:FILE", s.Model)
	}
	var err error
	if s.Caps.Line > 0 {
		if s.caps, err = readCaps(s.Caps.JSON); err != nil {
			say("caps", "%v", err)
		}
	}
	for name := range s.Env {
		if !envName().MatchString(name) || strings.HasPrefix(name, envPrefix) {
			c.say(append(slices.Clone(at), "env", name), "%q cannot be set: letters, digits and _, and not beginning with %s", name, envPrefix)
		}
	}
	if s.Pool != "" && !poolOK().MatchString(s.Pool) {
		say("pool", "pool %q: letters, digits, - and _, at most 64", s.Pool)
	}
	if !slices.Contains([]string{"", "high", "normal", "low"}, s.Priority) {
		say("priority", "priority must be high, normal or low, not %q", s.Priority)
	}
	if s.Attempts < 0 || s.Attempts > 20 {
		say("attempts", "attempts must be 1 to 20")
	}
	if err := s.Sandbox.CheckJob(); err != nil {
		field, _, _ := strings.Cut(err.Error(), ":")
		c.say(append(slices.Clone(at), "sandbox", field), "sandbox: %v", err)
	}
	if err := checkRules(s.Rules); err != nil {
		say("rules", "rules: %v", err)
	}
	if s.Timeout != "" {
		if s.timeout, err = time.ParseDuration(s.Timeout); err != nil || s.timeout <= 0 {
			say("timeout", "timeout %q: write a duration such as 90s, 10m or 2h", s.Timeout)
		}
	}
}

func checkRules(r policy.Rules) error {
	if err := r.Check(); err != nil {
		return err
	}
	_, err := rules.Parse(rules.Lists(r))
	return err
}

// job checks everything of one job but cycles.
func (c *planCheck) job(i int) {
	j, at := &c.plan.jobs[i], []any{"jobs", i}
	c.settings(at, &j.settings)
	prompt, steps := strings.TrimSpace(j.Prompt) != "", len(j.Steps) > 0
	switch {
	case prompt && steps:
		c.say(at, "job %q has a prompt and steps: one of them", j.ID)
	case !prompt && !steps:
		c.say(at, "job %q needs a prompt or steps", j.ID)
	}
	for k, id := range j.After {
		if _, ok := c.byID[id]; !ok {
			c.say([]any{"jobs", i, "after", k}, "job %q comes after %q, which is no job of this plan", j.ID, id)
		}
		if slices.Contains(j.After[:k], id) {
			c.say([]any{"jobs", i, "after", k}, "%q given twice", id)
		}
	}
	c.foreach(append(at, "foreach"), j.Foreach)
	c.text(append(at, "title"), j, j.Title, false)
	c.text(append(at, "prompt"), j, j.Prompt, true)
	for k := range j.Steps {
		c.step([]any{"jobs", i, "steps", k}, j, &j.Steps[k])
	}
}

func (c *planCheck) foreach(at []any, f *foreach) {
	switch {
	case f == nil:
	case len(f.Items) > 0 && f.Glob != "":
		c.say(at, "foreach has items and a glob: one of them")
	case len(f.Items) == 0 && f.Glob == "":
		c.say(at, "foreach needs items (a list) or a glob")
	case f.Glob != "" && (!doublestar.ValidatePattern(f.Glob) || path.IsAbs(f.Glob) || slices.Contains(strings.Split(f.Glob, "/"), "..")):
		c.say(append(at, "glob"), "glob %q: a pattern relative to the folder, such as **/*.go", f.Glob)
	case f.Chunk < 0:
		c.say(append(at, "chunk"), "chunk must be 1 or more")
	case len(f.Items) > maxParts*max(f.Chunk, 1):
		c.say(append(at, "items"), "%d items make more than %d parts: set chunk", len(f.Items), maxParts)
	}
}

// text checks the expressions of a text.
func (c *planCheck) text(at []any, j *planJob, s string, results bool) {
	all, err := refs(s)
	if err != nil {
		c.say(at, "%v", err)
	}
	for _, r := range all {
		switch {
		case r.kind == "results" && !results:
			c.say(at, "a title cannot hold the result of another job")
		case r.kind == "results" && !slices.Contains(j.After, r.id):
			c.say(at, "results.%s: job %q does not come after %q; add it to after", r.id, j.ID, r.id)
		case r.kind != "results" && j.Foreach == nil:
			c.say(at, "${{ %s }}: job %q has no foreach", r.kind, j.ID)
		case r.kind == "item" && j.Foreach.Chunk > 1:
			c.say(at, "${{ item }}: job %q has chunks of several items; use ${{ items }}", j.ID)
		}
	}
}

// step checks a tool call as the tool itself would, with "1" for each expression: a text, and a number too.
func (c *planCheck) step(at []any, j *planJob, s *planStep) {
	if strings.TrimSpace(s.Tool) == "" {
		c.say(at, "a step needs a tool")
		return
	}
	c.text(append(slices.Clone(at), "title"), j, s.Title, false)
	argsAt := append(slices.Clone(at), "args")
	if s.Args.Line == 0 {
		s.Args.JSON = json.RawMessage("{}")
	} else if s.Args.JSON[0] != '{' {
		c.say(argsAt, "args must be a mapping of fields")
		return
	}
	plain, err := mapTexts(s.Tool, s.Args.JSON, func(p place, text string) (string, error) {
		where := append(slices.Clone(argsAt), p.key)
		if !p.top {
			where = argsAt
		}
		c.text(where, j, text, true)
		return fill(text, func(ref) (string, bool) { return "1", true }), nil
	})
	if err == nil {
		err = tools.Check(s.Tool, plain)
	}
	var te *tools.Error
	if errors.As(err, &te) {
		c.say(at, "%s: %s", s.Tool, te.Text)
	} else if err != nil {
		c.say(at, "%s: %v", s.Tool, err)
	}
}

// order sorts the jobs so that each stands after those it comes after, otherwise as written; a cycle is told whole.
func (c *planCheck) order() {
	const (
		unseen = iota
		open
		done
	)
	jobs := c.plan.jobs
	state := make([]int, len(jobs))
	var trail []string
	var visit func(i int) bool
	visit = func(i int) bool {
		trail = append(trail, jobs[i].ID)
		defer func() { trail = trail[:len(trail)-1] }()
		switch state[i] {
		case done:
			return true
		case open:
			loop := trail[slices.Index(trail, jobs[i].ID):]
			c.say([]any{"jobs", i, "after"}, "the jobs wait for each other: %s", strings.Join(loop, " after "))
			return false
		}
		state[i] = open
		for _, id := range jobs[i].After {
			if !visit(c.byID[id]) {
				return false
			}
		}
		state[i] = done
		c.plan.sort = append(c.plan.sort, i)
		return true
	}
	for i := range jobs {
		if !visit(i) {
			return
		}
	}
}

// model returns the model of a job with a script's file name made relative to the plan's folder.
func (p *Plan) model(name string) string {
	if file := llm.ScriptFile(name); file != "" && !filepath.IsAbs(file) {
		return "script:" + filepath.Join(p.dir, file)
	}
	return name
}

// first returns the first value that is not empty.
func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// apply lays the settings of a job over those of the plan over those of base. What base says of the mode, the caps and the sandbox was
// asked for on the spot: no plan widens that mode or that sandbox, or changes those caps. Rules add up.
func (p *Plan) apply(s settings, base board.Job, now time.Time) board.Job {
	out := base
	out.Profile = first(s.Profile, p.all.Profile, base.Profile)
	out.Mode = tools.Narrow(base.Mode, first(s.Mode, p.all.Mode))
	out.Pool = first(s.Pool, p.all.Pool, base.Pool)
	out.Priority = board.Priority(first(s.Priority, p.all.Priority, string(base.Priority)))
	if m := first(s.Model, p.all.Model); m != "" {
		out.Model = p.model(m)
	}
	out.Sandbox = base.Sandbox.With(s.Sandbox.Over(p.all.Sandbox))
	out.Rules = policy.Rules{
		Allow: slices.Concat(base.Rules.Allow, p.all.Rules.Allow, s.Rules.Allow),
		Ask:   slices.Concat(base.Rules.Ask, p.all.Rules.Ask, s.Rules.Ask),
		Deny:  slices.Concat(base.Rules.Deny, p.all.Rules.Deny, s.Rules.Deny),
	}
	out.Caps = base.Caps.Over(s.caps.Over(p.all.caps))
	for _, n := range []int{p.all.Attempts, s.Attempts} {
		if n > 0 {
			out.Attempts = n
		}
	}
	for _, d := range []time.Duration{p.all.timeout, s.timeout} {
		if d > 0 {
			out.Deadline = now.Add(d)
		}
	}
	out.Env = map[string]string{}
	for _, env := range []map[string]string{base.Env, p.all.Env, s.Env} {
		for k, v := range env {
			out.Env[k] = v
		}
	}
	return out
}
