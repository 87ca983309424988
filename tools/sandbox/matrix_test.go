//go:build linux

package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// column is a confinement in the matrix.
type column struct {
	head, confine string
	uid0          bool // only root has it
	others        bool // only an ordinary user has it
}

// columns go from nothing over single layers to the rungs that "auto" accepts.
func columns() []column {
	return []column{
		{head: "none", confine: "none"},
		{head: "env+fds", confine: "only nothing"},
		{head: "rlimits", confine: "only rlimits"},
		{head: "caps", confine: "only caps"},
		{head: "uid", confine: "only uid", uid0: true},
		{head: "user", confine: "only user", others: true},
		{head: "pid", confine: "only pid"},
		{head: "mount", confine: "only mount"},
		{head: "net", confine: "only net"},
		{head: "ipc", confine: "only ipc"},
		{head: "landlock", confine: "only landlock"},
		{head: "seccomp", confine: "only seccomp"},
		{head: "**landlock**", confine: string(landlocked)},
		{head: "**full**", confine: string(full)},
	}
}

// TestMatrix prints attack × layer as it stands in doc.go, with -run Matrix -v. Without -v it tries a handful of both, and holds what the
// layers are there for.
func TestMatrix(t *testing.T) {
	names := allNames()
	cols := columns()
	if !testing.Verbose() || testing.Short() {
		names = []string{"read_outside", "environ_bystander", "kill_bystander", "tcp", "sysv_shm", "userns", "own_env"}
		cols = slices.DeleteFunc(cols, func(c column) bool {
			return !slices.Contains([]string{"none", "env+fds", "mount", "net", "ipc", "seccomp", "**full**"}, c.head)
		})
	}
	for _, u := range users() {
		t.Run(u.name, func(t *testing.T) {
			m := fillMatrix(t, u, cols, names)
			t.Log("\n" + m.String())
			for attack, layers := range map[string][]string{
				"own_env": {"env+fds"}, "tcp": {"net"}, "sysv_shm": {"ipc"}, "read_outside": {"mount"}, "kill_bystander": {"mount"}, "userns": {"seccomp"},
			} {
				if m.cells["none"][attack] != worked && !stoppedByEngine(attack) {
					t.Errorf("%s does not work without layers: %s", attack, m.cells["none"][attack])
				}
				for _, l := range append(layers, "**full**") {
					if m.cells[l][attack] == worked {
						t.Errorf("%s works with layer %s", attack, l)
					}
				}
			}
		})
	}
}

// matrix holds the outcome of each attack by column.
type matrix struct {
	cols  []column
	names []string
	cells map[string]map[string]string
}

func fillMatrix(t *testing.T, u user, cols []column, names []string) matrix {
	t.Helper()
	e := employ(t, u)
	m := matrix{names: names, cells: map[string]map[string]string{}}
	for _, c := range cols {
		if c.uid0 && u.uid != 0 || c.others && u.uid == 0 {
			continue
		}
		if slices.Contains(Rungs(), c.confine) && !slices.Contains(e.rungs, c.confine) {
			t.Logf("rung %s is not to be had here", c.confine)
			continue
		}
		m.cols = append(m.cols, c)
		m.cells[c.head] = map[string]string{}
		for _, f := range e.order(c.confine, names).Verdicts {
			m.cells[c.head][f.Name] = f.Outcome
		}
	}
	return m
}

// String is the matrix in Markdown: W worked, · blocked, ? cannot be tried here.
func (m matrix) String() string {
	var b strings.Builder
	b.WriteString("| attack |")
	for _, c := range m.cols {
		fmt.Fprintf(&b, " %s |", c.head)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(m.cols)) + "\n")
	sums := make([]int, len(m.cols))
	for _, name := range m.names {
		fmt.Fprintf(&b, "| %s |", name)
		for i, c := range m.cols {
			cell := "·"
			switch m.cells[c.head][name] {
			case worked:
				cell = "W"
				sums[i]++
			case untried, "":
				cell = "?"
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "| **%d attacks, work** |", len(m.names))
	for _, n := range sums {
		fmt.Fprintf(&b, " %d |", n)
	}
	return b.String() + "\n"
}
