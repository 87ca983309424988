package app

import (
	"os"
	"sync"

	"muster/board/secrets"
)

// hidden is what this process takes out of all that it stores, logs and says of errors. It is one for the process, like its standard error:
// nothing that is known to be a secret here may come out there by another way.
var hidden struct {
	mu sync.RWMutex
	r  *secrets.Redactor
}

// Hide adds secrets, each under the name that is shown in its place. What looks like a credential in the environment is hidden from the
// start of Run on, and so is what a Connection is opened with; this is for what a configuration names, before the board is opened.
func Hide(values map[string]string) error {
	hidden.mu.Lock()
	defer hidden.mu.Unlock()
	r, err := hidden.r.With(values)
	if err == nil {
		hidden.r = r
	}
	return err
}

// Hidden is what is hidden by now.
func Hidden() *secrets.Redactor {
	hidden.mu.RLock()
	defer hidden.mu.RUnlock()
	return hidden.r
}

// hideFile hides what a file of a key or of credentials holds. One that cannot be read, or holds nothing, is no secret.
func hideFile(name, file string) {
	if data, err := os.ReadFile(file); err == nil {
		_ = Hide(map[string]string{name: string(data)}) // too short for a key: whoever wants to use it says so
	}
}
