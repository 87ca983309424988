package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"muster/agents"
	"muster/board"
	"muster/board/approval"
	"muster/budget"
	"muster/cmd/internal/app"
	"muster/tools/rules"
	"muster/tools/workspace"
)

type approvalsOptions struct {
	boardOptions
	run, job string
	all      bool
}

type answerOptions struct {
	boardOptions
	job     string
	n       int // 0: the only one
	approve bool
	reason  string
	always  []string
}

// approvalRow is what --json prints of a question.
type approvalRow struct {
	approval.Approval
	Open bool `json:"open"` // somebody waits for the answer
}

func newApprovals() *cli.Command {
	return &cli.Command{
		Name: "approvals", Usage: "list what agents ask a person about", ArgsUsage: "[JOB]",
		UsageText: `orchestrator approvals
orchestrator approvals JOB
orchestrator approvals --all --json`,
		Description: `In mode default and accept-edits, and where a rule says ask, an agent may not call a tool before a person approves it. Jobs that were
submitted with --ask-for wait for the answer without a slot; others are denied at once. With JOB the whole of each question is shown.`,
		Flags: boardFlags(
			&cli.StringFlag{Name: "run", Usage: "only those of the run `ID`"},
			&cli.BoolFlag{Name: "all", Usage: "also those that are answered"},
			app.JSONFlag(),
		),
		Action: func(c *cli.Context) error {
			b, err := boardOptionsOf(c)
			if err != nil {
				return err
			}
			if c.NArg() > 1 {
				return app.Usage("approvals takes at most one job id")
			}
			return runApprovals(c.Context, approvalsOptions{b, c.String("run"), c.Args().First(), c.Bool("all")})
		},
	}
}

func newAnswer(approve bool) *cli.Command {
	cmd := &cli.Command{
		Name: "deny", Usage: "refuse what an agent asks; it goes on without it", ArgsUsage: "JOB [N]",
		UsageText:   `orchestrator deny JOB --reason "use make test instead"`,
		Description: "The agent is told the reason. N is the number of the question, where the job asks several; orchestrator approvals lists them.",
		Flags:       []cli.Flag{&cli.StringFlag{Name: "reason", Usage: "`TEXT` for the agent, and for the record"}, app.JSONFlag()},
	}
	if approve {
		cmd.Name, cmd.Usage = "approve", "allow what an agent asks, once or for the rest of the run"
		cmd.UsageText = `orchestrator approve JOB
orchestrator approve JOB 2 --always 'run_command(go test *)'`
		cmd.Description = `An approval is for one call with exactly these arguments. --always also allows further calls of the run that the rule covers, without
asking; what a rule can say is told by orchestrator rules --help. N is the number of the question, where the job asks several.`
		cmd.Flags = append(cmd.Flags, &cli.StringSliceFlag{Name: "always", Usage: "`RULE` that allows further calls of the run; may be repeated"})
	}
	cmd.Flags = boardFlags(cmd.Flags...)
	cmd.Action = func(c *cli.Context) error {
		b, err := boardOptionsOf(c)
		if err != nil {
			return err
		}
		o := answerOptions{boardOptions: b, job: c.Args().First(), approve: approve, reason: c.String("reason"), always: c.StringSlice("always")}
		if c.NArg() < 1 || c.NArg() > 2 {
			return app.Usage("%s takes a job id and, where it asks several things, a number", cmd.Name)
		}
		if c.NArg() == 2 {
			if o.n, err = strconv.Atoi(c.Args().Get(1)); err != nil || o.n < 1 {
				return app.Usage("%s: question %q: write its number, from 1", cmd.Name, c.Args().Get(1))
			}
		}
		return runAnswer(c.Context, o)
	}
	return cmd
}

func runApprovals(ctx context.Context, o approvalsOptions) error {
	return o.with(ctx, func(s *session) error {
		run, err := s.findRun(ctx, o.run)
		if err != nil {
			return err
		}
		job := ""
		if o.job != "" {
			e, err := s.Board.Get(ctx, o.job)
			if err != nil {
				return err
			}
			job = e.ID
		}
		all, err := s.Board.Approvals(ctx, run, job)
		if err != nil {
			return err
		}
		open, err := s.Board.Waiting(ctx, all)
		if err != nil {
			return err
		}
		waiting := map[string]bool{}
		for _, a := range open {
			waiting[a.Job+strconv.Itoa(a.N)] = true
		}
		rows := []approvalRow{} // never null in JSON
		for _, a := range all {
			if w := waiting[a.Job+strconv.Itoa(a.N)]; w || o.all {
				rows = append(rows, approvalRow{a, w})
			}
		}
		switch {
		case o.json:
			return s.out.Value(rows)
		case job != "":
			return s.out.Text(s.questions(rows))
		}
		return s.out.Table([]string{"JOB", "N", "STATE", "ASKED", "TITLE", "CALL", "ASKED BY"}, approvalCells(rows, time.Now()))
	})
}

func approvalCells(rows []approvalRow, now time.Time) [][]string {
	cells := make([][]string, 0, len(rows))
	for _, r := range rows {
		cells = append(cells, []string{
			short(r.Job), strconv.Itoa(r.N), r.state(now), span(now.Sub(r.Asked)) + " ago", app.Field(r.Title, 40), app.Field(callText(r.Approval), 160), app.Field(r.Why, 100),
		})
	}
	return cells
}

func (r approvalRow) state(now time.Time) string {
	switch {
	case !r.Approval.Open():
		return string(r.Verdict)
	case !r.Open:
		return "over"
	}
	return "open, " + span(r.Deadline.Sub(now)) + " left"
}

// questions are whole, for a person who decides.
func (s *session) questions(rows []approvalRow) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "question %d of %s (%s): %s\n%s\n", r.N, short(r.Job), app.Field(r.Title, 60), r.state(time.Now()), questionText(r.Approval))
		switch {
		case r.Open:
			fmt.Fprintf(&b, "%s, or deny\n\n", s.command("approve", short(r.Job), strconv.Itoa(r.N)))
		case !r.Approval.Open():
			fmt.Fprintf(&b, "%s by %s at %s%s\n\n", r.Verdict, r.By, r.Answered.Local().Format(time.DateTime), note(": ", r.Reason)+note("; always ", strings.Join(r.Always, ", ")))
		}
	}
	if b.Len() == 0 {
		return "nothing is asked\n"
	}
	return b.String()
}

func note(before, text string) string {
	if text == "" {
		return ""
	}
	return before + app.Field(text, 500)
}

// callText is a call in a line.
func callText(a approval.Approval) string {
	if command := commandOf(a); command != "" {
		return a.Tool + " " + spelled(command)
	}
	return a.Tool + " " + spelled(plainJSON(string(a.Args)))
}

// questionText is all of a question: why it is asked, and the exact call.
func questionText(a approval.Approval) string {
	var args map[string]json.RawMessage
	text := fmt.Sprintf("%s, %s\n", a.Tool, a.Why)
	if json.Unmarshal(a.Args, &args) != nil {
		return text + spelled(plainJSON(string(a.Args)))
	}
	if command := commandOf(a); command != "" {
		delete(args, "command")
		text += "  " + strings.ReplaceAll(spelled(command), "\n", "\n  ") + "\n"
	}
	if len(args) > 0 {
		rest, _ := json.Marshal(args) // of what was read
		text += "  " + spelled(plainJSON(string(rest))) + "\n"
	}
	return strings.TrimSuffix(text, "\n")
}

func commandOf(a approval.Approval) string {
	var args struct{ Command string }
	_ = json.Unmarshal(a.Args, &args) // what does not fit has none
	return args.Command
}

// spelled is a text in which whoever approves it sees everything: what has no picture stands as an escape.
func spelled(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == utf8.RuneError || budget.Hidden(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func runAnswer(ctx context.Context, o answerOptions) error {
	return o.with(ctx, func(s *session) error {
		a, err := s.Board.Find(ctx, o.job, o.n)
		if err != nil {
			return s.hinted(err)
		}
		answered, err := s.answer(ctx, a, approval.Answer{Approve: o.approve, Reason: o.reason, Always: o.always})
		if err != nil {
			return s.hinted(err)
		}
		if o.json {
			return s.out.Value(approvalRow{answered, false})
		}
		return s.out.Text(fmt.Sprintf("%s: question %d of %s: %s%s\n", answered.Verdict, a.N, short(a.Job), app.Field(callText(a), 200), note("; always ", strings.Join(answered.Always, ", "))))
	})
}

// hinted tells what to do about an answer that is not taken.
func (s *session) hinted(err error) error {
	if errors.Is(err, approval.ErrNoQuestion) || errors.Is(err, board.ErrAmbiguous) {
		return &app.Fault{Code: app.ExitFailed, Err: err, Hint: s.command("approvals") + " lists what is asked"}
	}
	return err
}

// answer answers in the name of whoever runs this program. A rule for further calls must cover the call that is approved.
func (s *session) answer(ctx context.Context, a approval.Approval, ans approval.Answer) (approval.Approval, error) {
	ans.By = person()
	if len(ans.Always) > 0 {
		if err := covers(ans.Always, a); err != nil {
			return a, app.Usage("--always: %w", err)
		}
	}
	return s.Board.Answer(ctx, a, ans)
}

// covers checks that rules are some, and that they allow the call. What depends on the job's files, its worker decides.
func covers(given []string, a approval.Approval) error {
	if _, err := rules.Parse(rules.Lists{Allow: given}); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "muster-rules-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Mkdir(dir+"/workspace", 0o700); err != nil {
		return err
	}
	tree, err := workspace.OpenDir(dir+"/workspace", dir+"/scratch")
	if err != nil {
		return err
	}
	defer tree.Close()
	var always []approval.Always
	for _, rule := range given {
		always = append(always, approval.Always{Rule: rule})
	}
	if _, ok := agents.Covered(tree, always, nil, a.Tool, a.Args); !ok {
		return fmt.Errorf("%s does not allow the call that is asked about: %s", app.Field(strings.Join(given, ", "), 200), app.Field(callText(a), 200))
	}
	return nil
}

// person is who answers, for the record.
func person() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil && host != "" {
		name += "@" + host
	}
	return app.Field(name, 80)
}
