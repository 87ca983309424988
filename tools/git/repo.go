package git

import (
	"os"
	"path/filepath"
	"strings"
)

// Repo says where git finds what it works on. All paths are absolute. The zero value is no repository: for work that needs none.
type Repo struct {
	Dir        string   // GIT_DIR; "" to let git find the repository of WorkTree
	View       string   // GIT_COMMON_DIR, see View; "" where the repository is one of ours
	Objects    string   // GIT_OBJECT_DIRECTORY; "" for the one in Dir
	WorkTree   string   // GIT_WORK_TREE and the folder git runs in; "" for work on objects alone
	Index      string   // GIT_INDEX_FILE; "" for the one in Dir
	Refresh    bool     // git may write into Index what it finds out about unchanged files, also where it is only asked
	Alternates []string // more object folders to read from
	Date       string   // of commits that are made, so that the same files give the same commit; "" for now
}

// Flags are what every run begins with. What could start a program, and what would fetch, is off.
func Flags() []string {
	var args []string
	for _, c := range []string{
		"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.attributesFile=/dev/null", "core.untrackedCache=false", "core.quotePath=false",
		"commit.gpgSign=false", "tag.gpgSign=false", "log.showSignature=false", "submodule.recurse=false",
		"gc.auto=0", "maintenance.auto=false", "protocol.allow=never", "safe.directory=*", "advice.detachedHead=false",
		"core.bigFileThreshold=32m", "pack.threads=2",
	} {
		args = append(args, "-c", c)
	}
	return args
}

// Env is the whole environment of git. Nothing of this process's own gets in but PATH.
func (r Repo) Env() []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE=/dev/null",
		"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "GIT_LITERAL_PATHSPECS=1", "GIT_PAGER=cat",
		"GIT_EDITOR=false", "GIT_SEQUENCE_EDITOR=false",
	}
	for name, value := range map[string]string{
		"GIT_DIR": r.Dir, "GIT_COMMON_DIR": r.View, "GIT_OBJECT_DIRECTORY": r.Objects, "GIT_INDEX_FILE": r.Index,
		"GIT_AUTHOR_DATE": r.Date, "GIT_COMMITTER_DATE": r.Date,
	} {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	switch {
	case r.Dir == "":
		env = append(env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(r.WorkTree))
	case r.WorkTree != "":
		env = append(env, "GIT_WORK_TREE="+r.WorkTree)
	case r.View != "":
		env = append(env, "GIT_IMPLICIT_WORK_TREE=0")
	}
	if !r.Refresh {
		env = append(env, "GIT_OPTIONAL_LOCKS=0")
	}
	if len(r.Alternates) > 0 {
		quoted := make([]string, len(r.Alternates))
		for i, a := range r.Alternates {
			quoted[i] = QuoteAlternate(a)
		}
		env = append(env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+strings.Join(quoted, ":"))
	}
	return env
}

// QuoteAlternate writes an object folder the way git reads lists of them.
func QuoteAlternate(dir string) string {
	if !strings.ContainsAny(dir, "\":#\n\\") {
		return dir
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(dir) + `"`
}
