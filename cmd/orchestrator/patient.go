package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"

	"muster/board"
	"muster/board/embedded"
	"muster/board/policy"
	"muster/cmd/internal/app"
	"muster/tools/sandbox"
	"muster/tools/workspace"
)

// patient is the machine that doctor looks at. Its methods are the checks; they change nothing but for an empty file that comes and goes.
type patient struct{ doctorOptions }

func (p patient) version(context.Context) []finding {
	return []finding{{"version", "ok", "muster " + app.Version(), ""}}
}

func (p patient) system(context.Context) []finding {
	text := fmt.Sprintf("%s, %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		text += fmt.Sprintf(", %s %s", unix.ByteSliceToString(u.Sysname[:]), unix.ByteSliceToString(u.Release[:]))
	}
	if runtime.GOOS != "linux" {
		return []finding{{"system", "warn", text, "commands are confined less well here than on Linux; see the sandbox below"}}
	}
	return []finding{{"system", "ok", fmt.Sprintf("%s, user %d", text, os.Geteuid()), ""}}
}

func (p patient) git(ctx context.Context) []finding {
	if err := workspace.Check(ctx); err != nil {
		return []finding{{"git", "fail", err.Error(), "install git: it carries the files of jobs"}}
	}
	said, err := exec.CommandContext(ctx, "git", "version").Output()
	if err != nil {
		return []finding{{"git", "fail", err.Error(), "install git: it carries the files of jobs"}}
	}
	return []finding{{"git", "ok", strings.TrimSpace(string(said)), ""}}
}

func (p patient) configuration(context.Context) []finding {
	f := p.host.File
	switch {
	case p.hostErr != nil:
		return []finding{{"configuration", "fail", p.hostErr.Error(), "until that is mended no command that works starts"}}
	case f.Path == "":
		return []finding{{"configuration", "warn", "there is no place for it: HOME and XDG_CONFIG_HOME are not set; the defaults count", "set HOME, or name a file with --config"}}
	case f.Read && p.host.Web.Searches() != "":
		return []finding{{"configuration", "ok", "read from " + f.Path + "; agents search the web by " + p.host.Web.Searches(), ""}}
	case f.Read:
		return []finding{{"configuration", "ok", "read from " + f.Path, ""}}
	}
	return []finding{{"configuration", "ok", f.Path + " is not there: the defaults count", ""}}
}

// little is how much free space a folder needs so that work is possible, and enough how much it should have.
const little, enough = 64 << 20, 1 << 30

func (p patient) folders(context.Context) []finding {
	var found []finding
	project, err := app.FindProject(p.dir)
	if err != nil {
		found = append(found, finding{"folder", "fail", err.Error(), "name the folder that is worked on with --dir"})
	} else {
		found = append(found, finding{"folder", "ok", "works on " + project.Dir, ""})
	}
	data := p.conn.Data
	if data == "" && err == nil {
		data, err = project.DataDir()
	}
	if p.conn.URL == "" && data != "" {
		found = append(found, place("data", data))
	} else if err != nil {
		found = append(found, finding{"data", "fail", err.Error(), "set HOME, or name a folder with --data"})
	}
	if cache, err := app.CacheDir(); err != nil {
		found = append(found, finding{"cache", "fail", err.Error(), "set HOME or XDG_CACHE_HOME"})
	} else {
		found = append(found, place("cache", cache))
	}
	return append(found, place("scratch", os.TempDir()))
}

// place says whether files can be made in a folder, or in the nearest one above where it is not there yet, and how much room there is.
func place(name, dir string) finding {
	at := dir
	for {
		_, err := os.Stat(at)
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
	f, err := os.CreateTemp(at, ".muster-doctor-*")
	if err != nil {
		return finding{name, "fail", fmt.Sprintf("%s: %v", dir, err), "make it writable for this user, or name another: --data, XDG_DATA_HOME, XDG_CACHE_HOME, TMPDIR"}
	}
	f.Close()
	os.Remove(f.Name())
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		return finding{name, "warn", fmt.Sprintf("%s: its free space cannot be told: %v", dir, err), ""}
	}
	free := uint64(st.Bavail) * uint64(st.Bsize)
	text := fmt.Sprintf("%s, %s free", dir, humanize.IBytes(free))
	switch {
	case free < little:
		return finding{name, "fail", text, "make room on that disk"}
	case free < enough:
		return finding{name, "warn", text, "that is not much for copies of files"}
	}
	return finding{name, "ok", text, ""}
}

// sandbox tells of each rung whether it is to be had, and of the one that commands get what it does.
func (p patient) sandbox(context.Context) []finding {
	if p.hostErr != nil {
		return nil
	}
	if p.host.Mode == policy.Off {
		return []finding{{"sandbox", "warn", "OFF: commands of agents run with all your rights", "leave --sandbox off away"}}
	}
	report, err := sandbox.Check(p.host.Policy())
	need := p.host.Sandbox.Min
	below := errors.Is(err, sandbox.ErrUnavailable)
	var found []finding
	for _, rung := range policy.Rungs() {
		if rung == policy.Off {
			continue
		}
		found = append(found, rungOf(rung, need, report))
	}
	switch {
	case below:
		found = append(found, finding{"commands", "fail", fmt.Sprintf("run: at %s at least, and this machine has %s: none is offered to agents, and workers with --sandbox required do not start", need, report.Rung),
			"get a better rung as told above, or accept a weaker one with --sandbox-min"})
	case err != nil:
		found = append(found, finding{"commands", "fail", err.Error(), ""})
	default:
		found = append(found, finding{"commands", "ok", fmt.Sprintf("run on rung %s; at least %s is asked for (--sandbox %s)", report.Rung, need, p.host.Mode), ""})
	}
	found = append(found,
		method("kill", report.Kill, "how all processes of a command are ended", []string{"", "pgroup"}, "a process that leaves its group survives: best effort"),
		method("memory", report.Memory, "what holds the limit of memory", []string{"", "none"}, "a command may take all memory of this machine"),
		finding{"network", "ok", p.network(), ""})
	if len(report.Open) > 0 {
		return append(found, finding{"open", "warn", "the self-test could still: " + strings.Join(report.Open, ", "), "a better rung closes that"})
	}
	return append(found, finding{"open", "ok", "the self-test could do nothing outside", ""})
}

func rungOf(rung, need string, r sandbox.Report) finding {
	name := "rung"
	for _, l := range r.Lacking {
		if l.Rung == rung {
			next := l.Get
			if rung == "full" && policy.Reaches(r.Rung, need) {
				next = strings.TrimSpace(next + " (serve and worker ask for it unless --sandbox-min says otherwise)")
			}
			return finding{name, "warn", rung + ": " + l.Why, next}
		}
	}
	switch {
	case rung == r.Rung:
		return finding{name, "ok", rung + ": commands get this one", ""}
	case policy.Reaches(r.Rung, rung):
		return finding{name, "ok", rung + ": weaker, not needed", ""}
	}
	return finding{name, "warn", rung + ": not to be had here", ""}
}

func method(name, have, what string, bad []string, why string) finding {
	if slices.Contains(bad, have) {
		return finding{name, "warn", dash(have) + ": " + why, ""}
	}
	return finding{name, "ok", have + " (" + what + ")", ""}
}

func (p patient) network() string {
	s := p.host.Sandbox
	switch s.Network {
	case "proxy":
		return "proxy: commands reach " + strings.Join(s.Domains, ", ")
	case "open":
		return "open: commands reach all that this machine does"
	}
	return "none: commands reach nothing but themselves"
}

// board looks at the board without making one or starting its server.
func (p patient) board(ctx context.Context) []finding {
	conn := p.conn
	if conn.URL == "" {
		data := conn.Data
		if data == "" {
			project, err := app.FindProject(p.dir)
			if err == nil {
				data, err = project.DataDir()
			}
			if err != nil {
				return nil // a finding of the folders
			}
		}
		url, key, err := embedded.Peek(data)
		if err != nil {
			return []finding{{"board", "ok", "none yet in " + data + ": `orchestrator run` or `orchestrator serve` makes it", ""}}
		}
		conn = app.Connection{URL: url, NKey: key, Prefix: conn.Prefix}
	}
	conn.Wait = 0
	log, _, err := app.Logger(os.Stderr, p.level)
	if err != nil {
		return []finding{{"board", "fail", err.Error(), ""}}
	}
	link, err := conn.Open(ctx, app.Project{}, log, nil)
	switch {
	case err != nil && p.conn.URL == "":
		return []finding{{"board", "ok", "kept, and nobody runs its server now: whichever command needs it does", ""}}
	case err != nil:
		return []finding{{"board", "fail", err.Error(), "is the address right, and the server up?"}}
	}
	defer func() { _ = link.Close() }() // nothing was written
	found := []finding{{"board", "ok", "on " + link.Where, ""}}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ws, err := link.Board.Workers(ctx)
	if err != nil {
		return append(found, finding{"workers", "fail", err.Error(), ""})
	}
	return append(found, workersFinding(ws))
}

func workersFinding(ws []board.WorkerInfo) finding {
	ws = slices.DeleteFunc(ws, func(w board.WorkerInfo) bool { return w.Slots == 0 })
	if len(ws) == 0 {
		return finding{"workers", "ok", "none serve this board now", "`orchestrator serve` or `worker` starts some"}
	}
	var rungs []string
	for _, rung := range append(policy.Rungs(), "") {
		n := len(slices.DeleteFunc(slices.Clone(ws), func(w board.WorkerInfo) bool { return w.Sandbox.Rung != rung }))
		if n > 0 {
			rungs = append(rungs, fmt.Sprintf("%d on %s", n, dash(rung)))
		}
	}
	f := finding{"workers", "ok", fmt.Sprintf("%d: %s", len(ws), strings.Join(rungs, ", ")), ""}
	if slices.ContainsFunc(ws, func(w board.WorkerInfo) bool { return w.Sandbox.Rung == policy.Off }) {
		f.Status, f.Next = "warn", "commands of those on off are not confined at all"
	}
	return f
}
