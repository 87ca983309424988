//go:build linux

package sandbox

import (
	"fmt"
	"strings"
)

// layerNames are the layers by the names of the matrix. What one of them cannot be without comes with it.
var layerNames = []struct {
	name string
	set  layer
}{
	{"rlimits", layerLimits},
	{"caps", layerCaps},
	{"uid", layerUID | layerMount},
	{"user", layerUser},
	{"pid", layerPID},
	{"mount", layerMount | layerPID | layerProc},
	{"net", layerNet},
	{"ipc", layerIPC},
	{"landlock", layerLandlock | layerCaps},
	{"seccomp", layerSeccomp | layerCaps},
	{"sockets", layerSeccomp | layerSockets | layerCaps},
}

// confined opens a box at the rung of that name, whatever better one there may be; or, for "only a+b", of just these layers.
func confined(name string, p Policy) (*Box, error) {
	names, only := strings.CutPrefix(name, "only ")
	if !only {
		return layered(layersOf(rung(name), p.Network), p)
	}
	var set layer
	for n := range strings.SplitSeq(names, "+") {
		found := n == "nothing"
		for _, l := range layerNames {
			if l.name == n {
				set |= l.set
				found = true
			}
		}
		if !found {
			return nil, fmt.Errorf("no layer %q", n)
		}
	}
	if set&(spaces) != 0 && !mayMount() {
		set |= layerUser
	}
	return layered(set, p)
}

// layered opens a box of just these layers.
func layered(l layer, p Policy) (*Box, error) {
	b := &Box{policy: p, live: map[*Process]bool{}}
	b.report = Report{Rung: "layers", Kill: killOf(l), Memory: memoryOf(l), Network: networkOf(l, p.Network)}
	_, err := b.space.openLayers(p, l)
	return b, err
}
