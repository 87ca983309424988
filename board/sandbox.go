package board

import "encoding/json"

// Sandbox is how a worker's commands are confined, as the self-test of its machine found it.
type Sandbox struct {
	Rung    string   `json:"rung"` // one of policy.Rungs
	Kill    string   `json:"kill"`
	Memory  string   `json:"memory"`
	Network string   `json:"network"`
	Open    []string `json:"open"` // what a command could still do
}

// UnmarshalJSON also takes what workers wrote before they had a sandbox: the way in which a process tree is ended, a plain text.
func (s *Sandbox) UnmarshalJSON(data []byte) error {
	var kill string
	if json.Unmarshal(data, &kill) == nil {
		*s = Sandbox{Kill: kill}
		return nil
	}
	type plain Sandbox
	return json.Unmarshal(data, (*plain)(s))
}
