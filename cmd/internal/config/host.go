package config

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"muster/agents"
	"muster/board"
	"muster/board/policy"
	"muster/tools/sandbox"
	"muster/tools/web"
)

// Host is what this machine allows: the file and the flags made one. Every field of Sandbox is settled.
type Host struct {
	File    File
	Mode    string         // auto, required or off
	Sandbox policy.Sandbox // what jobs narrow
	Asked   policy.Sandbox // what the command line said of it, for jobs that are done elsewhere
	Web     *web.Client    // what agents use the web with
}

// Flags are the flags that say how commands are confined. mode is what counts where neither flag nor file says anything.
func Flags(mode string) []cli.Flag {
	return []cli.Flag{
		FileFlag(),
		&cli.StringFlag{Name: "sandbox", DefaultText: mode, Usage: "how commands are confined: required (at --sandbox-min or better, or nothing starts), auto (below it no commands are offered), or off (needs allow_off in the configuration)"},
		&cli.StringFlag{Name: "sandbox-min", DefaultText: "full with required, landlock with auto", Usage: "the weakest `RUNG` to accept: " + strings.Join(rungs(), ", ")},
		&cli.StringFlag{Name: "network", DefaultText: "none", Usage: "what commands may reach: none (themselves), proxy (--allow-domain) or open (must stand in the configuration too)"},
		&cli.StringSliceFlag{Name: "allow-domain", Usage: "`DOMAIN` that commands may reach by the proxy, such as example.com or *.example.com; may be repeated"},
	}
}

// FileFlag names the configuration file.
func FileFlag() cli.Flag {
	return &cli.StringFlag{Name: "config", EnvVars: []string{"MUSTER_CONFIG"}, Usage: "configuration `FILE` of this machine (default: muster/config.yaml below XDG_CONFIG_HOME)"}
}

// JobFlags are those of Flags that a job takes along to workers elsewhere.
func JobFlags() []cli.Flag {
	return slices.DeleteFunc(Flags(""), func(f cli.Flag) bool { return slices.Contains([]string{"config", "sandbox"}, f.Names()[0]) })
}

// rungs are those that can be asked for.
func rungs() []string {
	return slices.DeleteFunc(policy.Rungs(), func(r string) bool { return r == policy.Off })
}

// AskedBy reads Flags or JobFlags, without the file. Every error is a mistake in one of them, and names it.
func AskedBy(c *cli.Context) (policy.Sandbox, error) {
	s := policy.Sandbox{Min: c.String("sandbox-min"), Network: c.String("network"), Domains: c.StringSlice("allow-domain")}
	if len(s.Domains) > 0 && s.Network == "" {
		s.Network = "proxy"
	}
	if mode := c.String("sandbox"); mode != "" && !slices.Contains(sandboxModes(), mode) {
		return s, fmt.Errorf("--sandbox %q: there are auto, required and off", mode)
	}
	return s, flagged(s.CheckHost())
}

// JobAskedBy reads JobFlags for a job that is done elsewhere.
func JobAskedBy(c *cli.Context) (policy.Sandbox, error) {
	s, err := AskedBy(c)
	if err == nil {
		err = flagged(s.CheckJob())
	}
	return s, err
}

func sandboxModes() []string { return []string{"auto", "required", "off"} }

// flagged names the flag where the error of a policy.Sandbox names the field.
func flagged(err error) error {
	if err == nil {
		return nil
	}
	for field, flag := range map[string]string{"min: ": "--sandbox-min", "network: ": "--network", "domains: ": "--allow-domain"} {
		if rest, ok := strings.CutPrefix(err.Error(), field); ok {
			return fmt.Errorf("%s: %s", flag, rest)
		}
	}
	return err
}

// HostOf reads Flags and the file. Every error is a mistake in one of them.
func HostOf(c *cli.Context, mode string) (Host, error) {
	file, err := ReadFile(c.String("config"))
	if err != nil {
		return Host{File: file}, err
	}
	asked, err := AskedBy(c)
	if err != nil {
		return Host{File: file}, err
	}
	h := Host{File: file, Mode: first(c.String("sandbox"), file.Sandbox.Mode, mode), Asked: asked}
	if err := h.settle(); err != nil {
		return h, err
	}
	return h, h.reach(c.StringSlice("allow-host")) // a flag of call alone
}

// settle makes one of file and flags.
func (h *Host) settle() error {
	file := h.File.Sandbox.Sandbox
	if file.Network == "" && len(file.Domains) > 0 {
		file.Network = "proxy"
	}
	h.Sandbox = h.Asked.Over(file)
	if h.Sandbox.Network == "proxy" {
		h.Sandbox.Domains = sorted(file.Domains, h.Asked.Domains)
	}
	s := &h.Sandbox
	s.Limits = s.Over(policy.Sandbox{Limits: builtIn()}).Limits
	s.Network = first(s.Network, "none")
	where := first(h.File.Path, "the configuration (there is none: HOME is not set)")
	switch {
	case h.Mode == "off" && !h.File.Sandbox.AllowOff:
		return fmt.Errorf("--sandbox off: it needs both this flag and the line `sandbox: {allow_off: true}` in %s, which is not there", where)
	case s.Network == "open" && file.Network != "open":
		return fmt.Errorf("--network open: it needs the line `sandbox: {network: open}` in %s too, which is not there", where)
	case s.Network == "proxy" && len(s.Domains) == 0:
		return fmt.Errorf("network proxy reaches nothing without a domain: give --allow-domain, or domains in %s", where)
	case h.Mode == "off" && h.Asked.Min != "":
		return fmt.Errorf("--sandbox off and --sandbox-min %s go against each other", h.Asked.Min)
	case h.Mode == "off":
		s.Min = ""
	case s.Min == "" && h.Mode == "required":
		s.Min = "full"
	case s.Min == "":
		s.Min = "landlock"
	}
	return nil
}

// builtIn are the limits of a machine whose configuration says nothing of them.
func builtIn() policy.Limits {
	d := sandbox.DefaultLimits()
	return policy.Limits{
		Processes: d.Processes, Memory: policy.Bytes(d.MemoryBytes), CPUSecs: d.CPUSecs, File: policy.Bytes(d.FileBytes), OpenFiles: d.OpenFiles,
		Tmp: policy.Bytes(d.TmpBytes), Disk: policy.Bytes(d.DiskBytes), DiskFiles: d.DiskFiles,
	}
}

// Policy is the host's as the sandbox takes it; agents.Confine puts what Sandbox or a job says into it, and what serves it.
func (h Host) Policy() sandbox.Policy {
	return sandbox.Policy{
		Mode: h.Mode, Min: h.Sandbox.Min, Network: h.Sandbox.Network, Readable: h.File.Sandbox.Readable,
		Proxy: func(c net.Conn) { c.Close() },
	}
}

// Job is what the command line asks of whoever does the jobs elsewhere.
func (h Host) Job() policy.Sandbox {
	s := h.Asked
	if s.Network == "open" {
		s.Network = ""
	}
	return s
}

// Found is how commands are confined here, and the error of commands that are not offered since the machine is below Sandbox.Min.
func (h Host) Found() (board.Sandbox, error) {
	p := h.Policy()
	r, err := sandbox.Check(p)
	return agents.SandboxOf(p, r), err
}

// Ready fails where this machine cannot confine commands as the host says they must be; its text says what is missing and how to get it.
// Nothing was started. With auto no machine is refused, and whoever starts commands finds out what it gives: that takes the start of several
// processes, which what needs no command must not wait for.
func (h Host) Ready() error {
	if h.Mode != "required" {
		return nil
	}
	_, err := sandbox.Check(h.Policy())
	return err
}

// Warn tells of commands that are not confined, in red on a terminal that can show it.
func (h Host) Warn(w io.Writer) {
	if h.Mode != "off" {
		return
	}
	text := "WARNING: the sandbox is OFF: commands of agents run with all your rights, files, network and processes included"
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		text = "\x1b[1;31m" + text + "\x1b[0m"
	}
	fmt.Fprintln(w, text)
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
