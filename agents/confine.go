package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rs/zerolog"

	"muster/board"
	"muster/board/policy"
	"muster/tools/egress"
	"muster/tools/rules"
	"muster/tools/sandbox"
)

// Confine puts what s says into p. With network proxy it starts what serves the commands' connections; call release when no command runs any
// more. log hears what they asked for.
func Confine(ctx context.Context, p sandbox.Policy, s policy.Sandbox, log zerolog.Logger) (_ sandbox.Policy, release func()) {
	p.Min, p.Network, release = s.Min, s.Network, func() {}
	p.Limits = sandbox.Limits{
		Processes: s.Limits.Processes, MemoryBytes: int64(s.Limits.Memory), CPUSecs: s.Limits.CPUSecs, FileBytes: int64(s.Limits.File),
		OpenFiles: s.Limits.OpenFiles, TmpBytes: int64(s.Limits.Tmp), DiskBytes: int64(s.Limits.Disk), DiskFiles: s.Limits.DiskFiles,
	}
	if p.Network != "proxy" {
		return p, release
	}
	proxy := egress.New(context.WithoutCancel(ctx), egress.Config{
		Allowed: func(host string) bool { return policy.Within(host, s.Domains) },
		Log: func(e egress.Event) {
			log.Info().Str("method", e.Method).Str("target", e.Target).Int("status", e.Status).Str("why", e.Why).
				Int64("sent", e.Sent).Int64("received", e.Received).Msg("a command asked for the network")
		},
	})
	p.Proxy = proxy.Serve
	return p, proxy.Close
}

// confine makes the policy of the job's commands: the host's, narrowed by what the job asks for. The error wraps board.ErrUnfit where another
// machine may do better.
func (a *attempt) confine(ctx context.Context) error {
	s, err := a.Allows.Narrow(a.job.Sandbox)
	if err != nil {
		return err
	}
	if a.Policy.Mode == policy.Off && a.job.Sandbox.Min != "" {
		return fmt.Errorf("%w: it asks for sandbox %s, and here it is off", board.ErrUnfit, a.job.Sandbox.Min)
	}
	p, release := Confine(ctx, a.Policy, s, a.log)
	report, err := sandbox.Check(p)
	below := errors.Is(err, sandbox.ErrUnavailable)
	switch {
	case below && (p.Mode == "required" || !policy.Reaches(report.Rung, a.job.Sandbox.Min)):
		err = fmt.Errorf("%w: %w", board.ErrUnfit, err)
	case below:
		err = nil // below what the host asks for with auto, commands are not offered
	}
	if err != nil {
		release()
		return err
	}
	a.policy, a.release, a.report = p, release, report
	return nil
}

// ruleSets are the rules of the host and of the job, each of which narrows.
func (a *attempt) ruleSets() ([]*rules.Set, error) {
	if a.job.Rules.IsZero() {
		return a.Rules, nil
	}
	set, err := rules.Parse(rules.Lists(a.job.Rules))
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return append(slices.Clone(a.Rules), set), nil
}

// confined is how the commands of the job are confined, for its facts.
func (a *attempt) confined() board.Sandbox {
	return SandboxOf(a.policy, a.report)
}

// SandboxOf is a report as the board has it.
func SandboxOf(p sandbox.Policy, r sandbox.Report) board.Sandbox {
	s := board.Sandbox{Rung: r.Rung, Kill: r.Kill, Memory: r.Memory, Network: r.Network, Open: r.Open}
	if p.Mode == policy.Off {
		s.Rung, s.Network = policy.Off, "open"
	}
	return s
}
