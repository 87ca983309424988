package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v2"

	"muster/agents"
	"muster/agents/llm"
	"muster/board"
	"muster/budget"
	"muster/cmd/internal/app"
	"muster/tools"
	"muster/tools/workspace"
)

// submission is a prompt or a plan, and what its jobs have in common.
type submission struct {
	prompt  string // the text, already read
	plan    string // a file
	inPlace bool
	quiet   bool      // nothing is told but what a person must know
	job     board.Job // model, profile, mode, caps, title, pool for every job
	model   string    // for jobs that name none
	project string    // as it was given
}

func submissionFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "plan", Usage: "run the jobs of a plan `FILE` (YAML), which may be a pipe"},
		&cli.StringFlag{Name: "prompt-file", Usage: "take the prompt from `FILE`"},
		&cli.StringFlag{Name: "model", EnvVars: []string{"MUSTER_MODEL"}, Usage: "`PROVIDER:MODEL` for jobs that name none, such as script:FILE"},
		&cli.StringFlag{Name: "profile", Usage: "what kind of agent does the prompt, and the jobs of a plan that name none (default: general)"},
		&cli.StringFlag{Name: "mode", Usage: "the most that agents may do: " + strings.Join(tools.Modes(), ", ") + "; of this and a plan's mode the narrower counts"},
		&cli.StringFlag{Name: "caps", Usage: "limits of the tools, `KEY=VALUE,…`, such as preset=compact,grep_matches=100; they win over a plan's"},
		&cli.StringFlag{Name: "title", Usage: "of the job on the board"},
		&cli.StringFlag{Name: "pool", Usage: "of the workers that may do it (default: default)"},
		projectFlag(),
		&cli.DurationFlag{Name: "ask-for", DefaultText: "24h where a person can be asked, else 0", Usage: "how long a question of an agent waits for a person, such as 2h (orchestrator approvals); 0 denies at once"},
		&cli.BoolFlag{Name: "in-place", Usage: "work on the folder itself instead of a private copy of it; nothing protects your files then"},
	}
}

func submissionOf(c *cli.Context) (submission, error) {
	s := submission{plan: c.String("plan"), inPlace: c.Bool("in-place"), model: c.String("model"), project: c.String("project")}
	s.job = board.Job{Profile: c.String("profile"), Mode: c.String("mode"), Title: c.String("title"), Pool: c.String("pool")}
	if s.job.AskFor = c.Duration("ask-for"); s.job.AskFor < 0 {
		return s, app.Usage("--ask-for %s: use 0 or more", s.job.AskFor)
	}
	if s.job.Mode != "" && !slices.Contains(tools.Modes(), s.job.Mode) {
		return s, app.Usage("--mode %q: there are %s", s.job.Mode, strings.Join(tools.Modes(), ", "))
	}
	var err error
	if s.job.Caps, err = choice(c.String("caps")); err != nil {
		return s, err
	}
	if c.NArg() > 1 {
		return s, &app.Fault{Code: app.ExitUsage, Err: fmt.Errorf("more than one prompt: %q, %q, …", c.Args().Get(0), c.Args().Get(1)), Hint: "put the prompt in quotes"}
	}
	ways := 0
	for _, given := range []bool{c.NArg() == 1, s.plan != "", c.IsSet("prompt-file")} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return s, &app.Fault{
			Code: app.ExitUsage, Err: errors.New("give one of a prompt, --prompt-file FILE and --plan FILE"),
			Hint: "for example: orchestrator run --plan examples/audit.yaml --dir .",
		}
	}
	if s.plan == "" {
		s.prompt, err = readPrompt(c.Context, c.Args().First(), c.String("prompt-file"))
	}
	return s, err
}

// choice reads --caps and checks its numbers.
func choice(text string) (budget.Choice, error) {
	if text == "" {
		return budget.Choice{}, nil
	}
	ch, err := budget.ParseChoice(text)
	if err == nil {
		_, err = ch.Caps()
	}
	if err != nil {
		return ch, app.Usage("--caps: %w", err)
	}
	return ch, nil
}

// jobs makes the jobs, with everything checked that can be before a board is asked: a mistake costs nothing and leaves nothing.
func (s submission) jobs(ctx context.Context, p app.Project) ([]board.Job, error) {
	profiles, err := agents.Profiles()
	if err != nil {
		return nil, fmt.Errorf("built-in profiles: %w", err)
	}
	if _, err := profileNamed(s.job.Profile, profiles); err != nil {
		return nil, app.Usage("--profile: %w", err) // also where every job of a plan names its own
	}
	base := s.job
	var jobs []board.Job
	if s.plan != "" {
		data, err := readInput(ctx, s.plan, maxPlanBytes)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, app.Usage("plan: %w", err)
		}
		plan, err := agents.ParsePlan(s.plan, data)
		if err == nil {
			jobs, err = plan.Jobs(ctx, p.Dir, base)
		}
		if err != nil {
			return nil, app.Usage("%w", err)
		}
	} else {
		base.Prompt = s.prompt
		if base.Title == "" {
			base.Title = budget.Preview(s.prompt, 80)
		}
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("make job id: %w", err)
		}
		base.ID, base.Run = id.String(), id.String()
		jobs = []board.Job{base}
	}
	for i := range jobs {
		if err := s.settle(&jobs[i], profiles); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// profileNamed is the profile of a name, which may be empty.
func profileNamed(name string, profiles []agents.Profile) (agents.Profile, error) {
	if name == "" {
		name = agents.DefaultProfile
	}
	names := make([]string, 0, len(profiles))
	for _, p := range profiles {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return agents.Profile{}, fmt.Errorf("no profile %q: there are %s", name, strings.Join(names, ", "))
}

// settle gives a job its model and checks that there is one.
func (s submission) settle(j *board.Job, profiles []agents.Profile) error {
	profile, err := profileNamed(j.Profile, profiles)
	if err != nil {
		return app.Usage("job %q: %w", j.Title, err)
	}
	if len(j.Steps) > 0 {
		return nil
	}
	if j.Model == "" && profile.Model == "" {
		j.Model = s.model
	}
	if j.Model == "" && profile.Model == "" {
		return &app.Fault{
			Code: app.ExitUsage, Err: fmt.Errorf("job %q: no model", j.Title),
			Hint: "A prompt needs a model: --model script:FILE (or MUSTER_MODEL) plays a script of turns, which needs no key.\n" +
				"A plan of tool steps needs none: orchestrator run --plan examples/audit.yaml --dir .",
		}
	}
	if j.Model == "" {
		return nil
	}
	if strings.HasPrefix(j.Model, "script:sha256:") {
		return nil // in the artifact store already
	}
	if _, err := llm.Open(j.Model, nil); err != nil {
		return app.Usage("job %q: %w", j.Title, err)
	}
	return nil
}

// submit puts what the jobs need beside them into the artifact store, and the jobs on the board. What their copy of the folder does not hold is said.
func (s *session) submit(ctx context.Context, sub submission, jobs []board.Job) ([]board.Entry, leftOut, error) {
	project, err := s.project.Memories(ctx, sub.project)
	if err != nil {
		return nil, leftOut{}, err
	}
	base, out, err := s.base(ctx, sub)
	if err != nil {
		return nil, out, err
	}
	if text := out.text(); text != "" {
		app.Note(os.Stderr, "%s", text)
	}
	for _, j := range jobs {
		if text := tells(j); app.Hidden().String(text) != text {
			app.Note(os.Stderr, "warning: the task of %s holds a secret, and a task stands on the board as it was given; name a variable in its place", app.Field(j.Title, 60))
		}
	}
	scripts := map[string]string{}
	for i := range jobs {
		jobs[i].Base, jobs[i].Project = base, project
		file := llm.ScriptFile(jobs[i].Model)
		if file == "" {
			continue
		}
		if scripts[file] == "" {
			a, err := s.putFile(ctx, file)
			if err != nil {
				return nil, out, err
			}
			scripts[file] = "script:sha256:" + a.SHA256
		}
		jobs[i].Model = scripts[file]
	}
	entries, err := s.Board.Submit(ctx, jobs...)
	if err != nil {
		return nil, out, fmt.Errorf("submit: %w", err)
	}
	return entries, out, nil
}

// tells is what of a job everybody who reads the board can read.
func tells(j board.Job) string {
	text := j.Prompt
	for _, s := range j.Steps {
		text += "\n" + string(s.Args)
	}
	return text
}

func (s *session) putFile(ctx context.Context, name string) (board.Artifact, error) {
	f, err := os.Open(name)
	if err != nil {
		return board.Artifact{}, fmt.Errorf("store script: %w", err)
	}
	defer f.Close()
	a, err := s.Board.Put(ctx, f)
	if err != nil {
		return a, fmt.Errorf("store script %s: %w", name, err)
	}
	return a, nil
}

// slowCopy is how long a copy may take before a person is told why nothing happens.
const slowCopy = 2 * time.Second

// base is the folder as the jobs get it: a snapshot in the artifact store, or the folder itself.
func (s *session) base(ctx context.Context, sub submission) (board.Base, leftOut, error) {
	dir := s.project.Dir
	if sub.inPlace {
		return board.Base{InPlace: dir}, leftOut{}, nil
	}
	if !sub.quiet {
		patience := time.AfterFunc(slowCopy, func() {
			app.Note(os.Stderr, "making the private copy of %s that jobs work on; it is large", app.Field(dir, 200))
		})
		defer patience.Stop()
	}
	base, out, err := s.snapshot(ctx, dir)
	if err != nil {
		err = fmt.Errorf("take a snapshot of %s: %w", dir, err)
	}
	return base, out, err
}

func (s *session) snapshot(ctx context.Context, dir string) (board.Base, leftOut, error) {
	place, err := app.CacheDir()
	if err != nil {
		return board.Base{}, leftOut{}, err
	}
	cache, err := workspace.OpenCache(place)
	if err != nil {
		return board.Base{}, leftOut{}, err
	}
	// Through a file, since storing may have to begin anew, and what is stored already is not sent again.
	f, err := os.CreateTemp("", "muster-snapshot-*")
	if err != nil {
		return board.Base{}, leftOut{}, err
	}
	defer f.Close()
	defer os.Remove(f.Name())
	snap, err := cache.Snapshot(ctx, dir, f)
	if err != nil {
		return board.Base{}, leftOut{}, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return board.Base{}, leftOut{}, err
	}
	pack, err := s.Board.Put(ctx, f)
	if err != nil {
		return board.Base{}, leftOut{}, fmt.Errorf("store it: %w", err)
	}
	return board.Base{Commit: snap.Commit, Pack: pack, Origin: s.project.Origin()}, leftOutOf(snap.Left), nil
}
