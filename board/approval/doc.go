// Package approval has the forms of what agents ask people, and of what those answer. Package board keeps them (Lease.Ask, Board.Answer).
//
// A Question is a call with its exact arguments. It becomes an Approval, which is open until a person writes an Answer over it, or its deadline
// passes; then it has a Verdict for good. The answer is for that call alone: Question.Hash tells it from any other. With an approval a person may
// give the run a rule (Always), by which further calls need no question.
package approval
