package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"muster/agents/llm"
	"muster/board"
	"muster/board/policy"
	"muster/budget"
	"muster/tools"
	"muster/tools/rules"
	"muster/tools/sandbox"
	"muster/tools/skills"
	"muster/tools/web"
	"muster/tools/workspace"
)

// Runner runs jobs: workspace → profile → steps or loop → result. Its methods may be called from several goroutines.
type Runner struct {
	Cache  *workspace.Cache
	Policy sandbox.Policy // of commands; what Allows says is put into it
	Allows policy.Sandbox // of the host: jobs narrow it
	Rules  []*rules.Set   // of the host: jobs add theirs
	Prune  []string       // folders that grep and glob do not enter; nil: those of workspace.Pruned
	Skills []string       // folders of the user's own skills
	Web    *web.Client    // what web_fetch and web_search use; nil: the public web, and no search
	Log    zerolog.Logger

	reclaim  sync.Once
	once     sync.Once // fills what follows
	known    catalog
	profiles []Profile
	broken   error
}

// learn reads what is built in, once.
func (r *Runner) learn() error {
	r.once.Do(func() {
		r.known = newCatalog()
		r.profiles, r.broken = readProfiles(r.known)
	})
	return r.broken
}

// attempt is one job on its way.
type attempt struct {
	*Runner
	lease   *board.Lease
	job     board.Job
	profile Profile
	mode    string
	caps    budget.Caps
	policy  sandbox.Policy // of this job's commands
	report  sandbox.Report // of how they are confined
	release func()         // ends what serves them
	tree    *workspace.Tree
	skills  []skills.Skill
	env     map[string]string // of its commands
	set     *tools.Set
	log     zerolog.Logger
	loop    *loop       // nil for steps
	dying   atomic.Bool // its processes are being ended, and ctx ends next
}

// Run is a board.Handler. Its error is for an end that is no result: the worker stops, the lease is lost, or the board cannot
// be reached. What the job changed is stored with every other end, also when it failed or was killed.
func (r *Runner) Run(ctx context.Context, l *board.Lease) (board.Result, error) {
	a := &attempt{Runner: r, lease: l, job: l.Job(), release: func() {}}
	a.log = r.Log.With().Str("job", a.job.ID).Uint64("epoch", l.Entry().Epoch).Logger()
	defer func() { a.release() }()
	if res, err := a.prepare(ctx); res != nil || err != nil {
		switch cause := stopped(ctx); {
		case cause != nil:
			return board.Result{}, cause
		case ctx.Err() != nil:
			return a.cancelled(ctx, deref(res)), nil
		}
		return deref(res), err
	}
	res, err := a.work(ctx)
	// Nothing of the job runs from here on: its files stand still while they are read.
	if _, survivors := a.set.Close(); survivors > 0 {
		a.log.Error().Int("survivors", survivors).Msg("processes of the job could not be ended")
	}
	defer func() {
		if err := a.tree.Close(); err != nil {
			a.log.Warn().Err(err).Msg("the workspace could not be removed")
		}
	}()
	if cause := stopped(ctx); cause != nil {
		a.leave(ctx, cause)
		return board.Result{}, cause
	}
	res.Usage = l.Entry().Usage
	if err != nil && ctx.Err() == nil {
		return board.Result{}, err
	} else if err != nil {
		res = a.cancelled(ctx, res)
	}
	if err := a.keep(ctx, &res); err != nil {
		return board.Result{}, err
	}
	return res, nil
}

// stopped is the cause of an end after which nothing may be written, or nil.
func stopped(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, board.ErrKilled) || errors.Is(cause, board.ErrDeadline) {
		return nil
	}
	return cause
}

// cancelled is the result of a job that was killed or ran out of time; res has what it said so far.
func (a *attempt) cancelled(ctx context.Context, res board.Result) board.Result {
	res.State, res.Error = board.Killed, ""
	if errors.Is(context.Cause(ctx), board.ErrDeadline) {
		res.State, res.Error = board.Partial, "its deadline passed"
	}
	return res
}

// prepare makes ready what the job works with. It returns the result of a job that cannot begin, or an error where that is the fault of
// this worker.
func (a *attempt) prepare(ctx context.Context) (*board.Result, error) {
	refuse := func(err error) (*board.Result, error) {
		return &board.Result{State: board.Failed, Error: err.Error()}, nil
	}
	err := a.learn()
	if err != nil {
		return refuse(err)
	}
	if a.profile, err = profileNamed(a.job.Profile, a.profiles); err != nil {
		return refuse(err)
	}
	if a.caps, err = a.job.Caps.Over(a.profile.Caps).Caps(); err != nil {
		return refuse(err)
	}
	a.mode = a.chooseMode()
	sets, err := a.ruleSets()
	if err != nil {
		return refuse(err)
	}
	if err = a.confine(ctx); errors.Is(err, board.ErrUnfit) {
		return nil, err
	} else if err != nil {
		return refuse(err)
	}
	if a.tree, err = a.checkout(ctx); workspace.HostFault(err) {
		return nil, fmt.Errorf("%w: %w", board.ErrUnfit, err)
	} else if err != nil {
		res, _ := refuse(err)
		res.Retry = a.job.Base.InPlace == ""
		return res, nil
	}
	a.findSkills()
	a.env, err = a.gather(ctx)
	retry := err != nil // what others said could not be read
	if err == nil {
		a.set, err = tools.New(tools.Config{
			Tree: a.tree, Caps: a.caps, Mode: a.mode, Allow: a.profile.allow(a.known), Policy: a.policy, Rules: sets, Env: a.env, Prune: a.Prune,
			Lease: a.lease, Profiles: delegates(a.profiles), Skills: a.skills, Web: a.Web, Journal: a.journal(ctx), Ask: a.ask,
		})
	}
	if err != nil {
		if cerr := a.tree.Close(); cerr != nil {
			a.log.Warn().Err(cerr).Msg("the workspace could not be removed")
		}
		res, _ := refuse(err)
		res.Retry = retry
		return res, nil
	}
	a.lease.OnKill(func() (ended, survivors int) {
		a.dying.Store(true)
		return a.set.Close()
	})
	return nil, nil
}

// findSkills looks for skills in the files and in the folders of the user. What is wrong with one is for orchestrator doctor to tell.
func (a *attempt) findSkills() {
	found, problems := skills.Find(a.tree, a.Skills)
	for _, p := range problems {
		a.log.Debug().Str("skill", p.File).Int("line", p.Line).Bool("skipped", p.Skipped).Msg(p.Text)
	}
	a.skills = found
}

// journal writes the log of the tools. A call that is only repeated by the next holder (it reads, or waits for a child) and that the stop
// of this worker broke off gets no receipt: to the model it would read as a failure.
func (a *attempt) journal(job context.Context) func(ctx context.Context, kind string, data any) error {
	return func(ctx context.Context, kind string, data any) error {
		if r, ok := data.(tools.Reply); ok && !r.OK && a.known.repeatable(r.Tool) && stopped(job) != nil {
			return nil
		}
		return a.lease.Append(ctx, kind, data)
	}
}

// cause is why the job must stop, or nil. A kill ends the processes before ctx: what a tool says then is no reason to go on.
func (a *attempt) cause(ctx context.Context) error {
	if a.dying.Load() {
		<-ctx.Done()
	}
	return context.Cause(ctx)
}

// delegates are the profiles that an agent may start others of, the default first.
func delegates(all []Profile) []tools.Profile {
	var rows []tools.Profile
	for _, p := range all {
		row := tools.Profile{Name: p.Name, Description: p.Description}
		if p.Name == DefaultProfile {
			rows = slices.Insert(rows, 0, row)
		} else {
			rows = append(rows, row)
		}
	}
	return rows
}

// chooseMode is the narrower of the job's and its profile's; where neither says anything and nobody could ever answer a question,
// nothing asks.
func (a *attempt) chooseMode() string {
	unattended := ""
	if len(a.job.Steps) > 0 || a.job.Name != "" || llm.IsScript(a.model()) {
		unattended = "goal"
	}
	return first(tools.Narrow(a.job.Mode, a.profile.Mode), unattended, "default")
}

func (a *attempt) model() string { return first(a.job.Model, a.profile.Model) }

// readOnly says that nothing can change the job's files, so that it may share its tree.
func (a *attempt) readOnly() bool {
	if len(a.job.Steps) == 0 {
		return !a.profile.changesFiles(a.mode, a.known)
	}
	return !slices.ContainsFunc(a.job.Steps, func(s board.Step) bool { return a.known[s.Tool] != tools.Read })
}

func (a *attempt) checkout(ctx context.Context) (*workspace.Tree, error) {
	a.reclaim.Do(func() { a.clearCache(ctx) })
	name := fmt.Sprintf("%s-%d", a.job.ID, a.lease.Entry().Epoch)
	if dir := a.job.Base.InPlace; dir != "" {
		return a.Cache.InPlace(ctx, name, dir, a.readOnly())
	}
	t, err := a.Cache.Checkout(ctx, name, a.job.Base.Commit, a.readOnly(), func(w io.Writer) error {
		return a.lease.Board().Fetch(ctx, a.job.Base.Pack, w)
	})
	if err != nil {
		return nil, fmt.Errorf("make a workspace of %s: %w", first(a.job.Base.Commit, "nothing"), err)
	}
	return t, nil
}

// clearCache removes what workers that are gone have left, and says where it saved the changes that were in it.
func (a *attempt) clearCache(ctx context.Context) {
	list, err := a.Cache.Reclaim(ctx)
	if err != nil {
		a.log.Warn().Err(err).Msg("what earlier workers left could not be reclaimed")
	}
	for _, r := range list {
		a.log.Warn().Err(r.Err).Str("attempt", r.Attempt).Str("saved", r.Saved).Msg("reclaimed the workspace of a worker that is gone")
	}
}

// work does the job: steps, or a model.
func (a *attempt) work(ctx context.Context) (board.Result, error) {
	if len(a.job.Steps) > 0 {
		return a.steps(ctx)
	}
	var away error // the store could not be read: another attempt may
	model, err := llm.Open(a.model(), func(sha string, w io.Writer) error {
		away = a.lease.Board().Fetch(ctx, board.Artifact{SHA256: sha}, w)
		return away
	})
	if err != nil {
		return board.Result{State: board.Failed, Error: err.Error(), Retry: away != nil}, nil
	}
	if err := a.resume(ctx, model); err != nil {
		return board.Result{}, err
	}
	res, err := a.loop.run(ctx)
	if err != nil {
		res.Text = a.loop.talk.lastText
	}
	return res, err
}
