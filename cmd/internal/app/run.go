package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"muster/board/secrets"
	"muster/budget"
)

// Run runs a program's command line and returns its exit code. The first SIGINT, SIGTERM or SIGHUP cancels the context of the command with an
// Interrupt as cause; the second ends the process at once. Every command is checked here in the same way, see settle.
func Run(ctx context.Context, program *cli.App, args []string) int {
	ctx, stop := signals(ctx)
	defer stop()
	_ = Hide(secrets.Credentials(os.Environ()))           // of these all can be looked for
	program.ExitErrHandler = func(*cli.Context, error) {} // Report decides, and main exits
	program.OnUsageError = func(_ *cli.Context, err error, _ bool) error { return usageError(program.Name, err) }
	program.DisableSliceFlagSeparator = true
	program.HideVersion = true // a command of its own, or a flag of the program's
	program.HideHelpCommand = true
	if len(args) > 1 && args[1] == "--version" && program.Command("version") != nil {
		args = append([]string{args[0], "version"}, args[2:]...)
	}
	if len(program.Commands) > 0 {
		program.Action = func(c *cli.Context) error {
			if c.Args().Present() {
				return &Fault{Code: ExitUsage, Err: fmt.Errorf("unknown command %q%s", c.Args().First(), meant(program, c.Args().First())), Hint: "`" + program.Name + " --help` lists the commands"}
			}
			return &Fault{Code: ExitUsage, Err: errors.New("which command?"), Hint: "`" + program.Name + " --help` lists them"}
		}
	} else if len(args) > 0 {
		program.Action = settle(program.Name, program.Action)
		args = append(args[:1:1], reorder(program.Flags, args[1:])...)
	}
	for _, c := range program.Commands {
		c.HideHelpCommand = true // `run help` is a prompt, not a question
		c.OnUsageError = func(_ *cli.Context, err error, _ bool) error { return usageError(program.Name+" "+c.Name, err) }
		c.Action = settle(program.Name+" "+c.Name, c.Action)
		if len(args) > 1 && c.HasName(args[1]) {
			args = append(args[:2:2], reorder(c.Flags, args[2:])...)
		}
	}
	return Report(ctx, os.Stderr, program.Name, program.RunContext(ctx, args))
}

// meant names the command that somebody may have meant.
func meant(program *cli.App, word string) string {
	var names []string
	for _, c := range program.Commands {
		names = append(names, c.Name)
	}
	if likely := budget.Likely(word, names, 1); len(likely) > 0 {
		return "; did you mean " + likely[0] + "?"
	}
	return ""
}

// settle puts what must hold for every command around its action: a flag that the parser took for an argument is an error.
func settle(name string, action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.Command.ArgsUsage == "" && c.Args().Present() {
			return usageError(name, fmt.Errorf("unexpected argument %q", c.Args().First()))
		}
		return action(c)
	}
}

// reorder moves flags before the other arguments, since the parser stops at the first that is none and would take the rest for arguments, in silence.
// Everything after "--" is an argument.
func reorder(flags []cli.Flag, args []string) []string {
	var first, rest []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			rest = append(rest, args[i+1:]...)
			i = len(args)
		case len(a) < 2 || a[0] != '-':
			rest = append(rest, a)
		default:
			if a == "--help" || a == "-h" {
				return []string{"--help"} // of the command, whatever else is said
			}
			first = append(first, a)
			if !takesValue(flags, a) {
				continue
			}
			if i++; i == len(args) {
				return first // the parser says that its value is missing
			}
			first = append(first, args[i])
		}
	}
	return append(append(first, "--"), rest...)
}

// takesValue says whether the value of a flag is the next argument.
func takesValue(flags []cli.Flag, arg string) bool {
	name := strings.TrimLeft(arg, "-")
	if strings.Contains(name, "=") {
		return false
	}
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			_, isBool := f.(*cli.BoolFlag)
			return !isBool
		}
	}
	return false
}

// sameSignal is how long a signal counts as the first one still: timeout(1) sends each twice, to its child and to the group.
const sameSignal = 50 * time.Millisecond

// signals makes the context of a command. SIGPIPE becomes an error of the write, so that a command whose reader has gone ends what it started.
// A SIGHUP that is ignored (nohup) stays ignored; it never counts as the second signal, since the kernel and the shell both send one when a terminal closes.
func signals(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(ch, syscall.SIGHUP)
	}
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case s := <-ch:
			cancel(&Interrupt{s})
		case <-done:
			return
		}
		for first := time.Now(); ; {
			select {
			case s := <-ch:
				if s != syscall.SIGHUP && time.Since(first) > sameSignal {
					os.Exit((&Interrupt{s}).code())
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		close(done)
		<-gone
		signal.Stop(ch)
		signal.Stop(pipe)
		cancel(nil)
	}
}

// Version is the version of the running program, from its build information.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && !strings.Contains(v, s.Value[:min(12, len(s.Value))]) {
			v += "+" + s.Value[:min(12, len(s.Value))]
		}
	}
	return v
}
