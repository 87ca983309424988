package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Off is the rung of commands that are not confined at all.
const Off = "off"

// Rungs lists how commands can be confined, the best first.
func Rungs() []string {
	return []string{"full", "full-same-uid", "full-no-proc", "landlock", "seccomp", "limits", Off}
}

// Reaches says whether a machine on a rung has at least the rung least; an empty one is had by every machine. A rung that nobody knows
// reaches nothing, and nothing reaches it.
func Reaches(rung, least string) bool {
	have, want := slices.Index(Rungs(), rung), slices.Index(Rungs(), least)
	return least == "" || have >= 0 && want >= 0 && have <= want
}

// Networks lists what commands may reach, the least first: nothing but themselves, allow-listed domains by way of the worker, everything.
func Networks() []string { return []string{"none", "proxy", "open"} }

// Sandbox bounds the commands of jobs: a host's says what it allows, a job's what it needs no more than. Zero values: of a host no
// network and whatever rung and limits there are, of a job the host's.
type Sandbox struct {
	Min     string   `json:"min,omitempty" yaml:"min"`         // the weakest rung to run on
	Network string   `json:"network,omitempty" yaml:"network"` // one of Networks
	Domains []string `json:"domains,omitempty" yaml:"domains"` // with network proxy: example.com, *.example.com
	Limits  Limits   `json:"limits,omitzero" yaml:"limits"`
}

// IsZero says that s says nothing.
func (s Sandbox) IsZero() bool {
	return s.Min == "" && s.Network == "" && len(s.Domains) == 0 && s.Limits == Limits{}
}

// Limits bound a command with everything it starts. 0: the host's, or the built-in one; a host may say -1 for no limit.
type Limits struct {
	Processes int   `json:"processes,omitempty" yaml:"processes"`   // and threads, that live at once
	Memory    Bytes `json:"memory,omitempty" yaml:"memory"`         // of each process, and of all together
	CPUSecs   int   `json:"cpu_secs,omitempty" yaml:"cpu_secs"`     // of each process
	File      Bytes `json:"file,omitempty" yaml:"file"`             // size of a file
	OpenFiles int   `json:"open_files,omitempty" yaml:"open_files"` // of each process
	Tmp       Bytes `json:"tmp,omitempty" yaml:"tmp"`               // size of its private /tmp
	Disk      Bytes `json:"disk,omitempty" yaml:"disk"`             // growth of what it may write to
	DiskFiles int64 `json:"disk_files,omitempty" yaml:"disk_files"` // the same in files
}

// Rules are patterns over tool calls, as package tools/rules reads them. A job's are obeyed beside those of its host.
type Rules struct {
	Allow []string `json:"allow,omitempty" yaml:"allow"`
	Ask   []string `json:"ask,omitempty" yaml:"ask"`
	Deny  []string `json:"deny,omitempty" yaml:"deny"`
}

// IsZero says that there are no rules.
func (r Rules) IsZero() bool { return len(r.Allow)+len(r.Ask)+len(r.Deny) == 0 }

// maxRules bounds how many a job brings along, and how long each is.
const maxRules, ruleBytes = 1_000, 2_000

// Check says whether there are more rules than a job may have; what one means, package tools/rules knows.
func (r Rules) Check() error {
	all := slices.Concat(r.Allow, r.Ask, r.Deny)
	if len(all) > maxRules {
		return fmt.Errorf("%d of them, at most %d are allowed", len(all), maxRules)
	}
	for _, one := range all {
		if strings.TrimSpace(one) == "" || len(one) > ruleBytes {
			return fmt.Errorf("%.60q: write 1 to %d bytes", one, ruleBytes)
		}
	}
	return nil
}

// CheckJob says what of s no job may ask for: the rung off, an open network, no limit, and whatever nobody knows.
func (s Sandbox) CheckJob() error {
	if s.Min == Off {
		return errors.New("min: no job can ask for off: that takes a flag and the configuration of the host")
	}
	if s.Network == "open" {
		return errors.New("network: no job can ask for open: that is for the configuration of the host; there are none and proxy")
	}
	for _, l := range s.Limits.rows() {
		if l.of < 0 {
			return fmt.Errorf("limits: %s %d: a job cannot take a limit away; write a number from 1, or leave it out", l.name, l.of)
		}
	}
	return s.CheckHost()
}

// CheckHost says what of s is no word of this package, or goes against another.
func (s Sandbox) CheckHost() error {
	rungs := strings.Join(Rungs()[:len(Rungs())-1], ", ")
	if s.Min == Off {
		return fmt.Errorf("min: off is no rung to ask for: there are %s", rungs)
	}
	if s.Min != "" && !slices.Contains(Rungs(), s.Min) {
		return fmt.Errorf("min: unknown rung %q: there are %s", s.Min, rungs)
	}
	if s.Network != "" && !slices.Contains(Networks(), s.Network) {
		return fmt.Errorf("network: %q: there are %s", s.Network, strings.Join(Networks(), ", "))
	}
	if len(s.Domains) > 0 && s.Network != "" && s.Network != "proxy" {
		return fmt.Errorf("domains: they go with network proxy, and network is %s", s.Network)
	}
	if len(s.Domains) > maxDomains {
		return fmt.Errorf("domains: %d of them, at most %d are allowed", len(s.Domains), maxDomains)
	}
	for _, d := range s.Domains {
		if err := checkDomain(d); err != nil {
			return fmt.Errorf("domains: %w", err)
		}
	}
	for _, l := range s.Limits.rows() {
		if l.of < -1 {
			return fmt.Errorf("limits: %s %d: write a number from 1, or -1 for no limit", l.name, l.of)
		}
		if least := leastLimit(l.name); l.of > 0 && l.of < least {
			return fmt.Errorf("limits: %s %d: no command could start; write a number from %d on", l.name, l.of, least)
		}
	}
	return nil
}

// leastLimit is what bash needs of a kind to start another program, and some more.
func leastLimit(name string) int64 {
	switch name {
	case "processes":
		return 4
	case "memory":
		return 16 << 20
	case "open_files":
		return 16
	}
	return 1
}

// Over lays s over below, field by field: what s says counts, and below where s says nothing.
func (s Sandbox) Over(below Sandbox) Sandbox {
	out := below
	if s.Min != "" {
		out.Min = s.Min
	}
	if s.Network != "" {
		out.Network = s.Network
		if s.Network != "proxy" {
			out.Domains = nil
		}
	}
	if len(s.Domains) > 0 {
		out.Domains = s.Domains
	}
	mine, theirs := s.Limits.rows(), out.Limits.rows()
	for i, l := range mine {
		if l.of != 0 {
			theirs[i].of = l.of
		}
	}
	out.Limits = limitsOf(theirs)
	return out
}

// With is what both say: the better rung, the lesser network, the domains of both, the lower limits. Where one says nothing the other
// counts.
func (s Sandbox) With(other Sandbox) Sandbox {
	out := s
	if s.Min == "" || other.Min != "" && !Reaches(s.Min, other.Min) {
		out.Min = other.Min
	}
	a, b := s.network(), other.network()
	switch {
	case a == "" || b != "" && slices.Index(Networks(), b) < slices.Index(Networks(), a):
		out.Network, out.Domains = b, other.Domains
	case a == "proxy" && b == "proxy" && len(s.Domains) > 0 && len(other.Domains) > 0:
		out.Network, out.Domains = a, common(s.Domains, other.Domains)
		if len(out.Domains) == 0 {
			out.Network = "none" // an empty list would be that of the host
		}
	case a == "proxy" && b == "proxy" && len(s.Domains) == 0:
		out.Network, out.Domains = a, other.Domains
	default:
		out.Network = a
	}
	mine, theirs := s.Limits.rows(), other.Limits.rows()
	for i, l := range theirs {
		if l.of > 0 && (mine[i].of <= 0 || l.of < mine[i].of) {
			mine[i].of = l.of
		}
	}
	out.Limits = limitsOf(mine)
	return out
}

// network is what s says of it, also by its domains alone.
func (s Sandbox) network() string {
	if s.Network == "" && len(s.Domains) > 0 {
		return "proxy"
	}
	return s.Network
}

// Narrow is what a job runs under on a host. The error names everything that the job asks for and the host does not allow. Limits of a
// host that are not above 0 bound nothing here: fill the built-in ones in before.
func (s Sandbox) Narrow(job Sandbox) (Sandbox, error) {
	if err := job.CheckJob(); err != nil {
		return Sandbox{}, err
	}
	if s.Network = s.network(); s.Network == "" {
		s.Network = "none"
	}
	var wrong []error
	want := job.network()
	if slices.Index(Networks(), want) > slices.Index(Networks(), s.Network) {
		wrong = append(wrong, fmt.Errorf("network %s: this host allows %s", want, s.Network))
	} else if more := without(job.Domains, s.Domains); s.Network == "proxy" && len(more) > 0 {
		wrong = append(wrong, fmt.Errorf("domains %s: this host allows %s", strings.Join(more, ", "), strings.Join(s.Domains, ", ")))
	}
	mine := s.Limits.rows()
	for i, l := range job.Limits.rows() {
		if mine[i].of > 0 && l.of > mine[i].of {
			wrong = append(wrong, fmt.Errorf("limit %s %s: this host allows %s", l.name, l, mine[i]))
		}
	}
	if len(wrong) > 0 {
		return Sandbox{}, fmt.Errorf("the job asks for more than is allowed here: %w", joined(wrong))
	}
	return s.With(job), nil
}

// joined is errors.Join in one line.
func joined(errs []error) error {
	err := errs[0]
	for _, e := range errs[1:] {
		err = fmt.Errorf("%w; %w", err, e)
	}
	return err
}
