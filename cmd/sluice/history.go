package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/postgres"
)

func newHistory(flags *config.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "history",
		Short:   "Check the history of changes in PostgreSQL",
		Example: `  sluice history verify --config /etc/sluice/sluice.toml`,
	}
	cmd.AddCommand(newHistoryVerify(flags))
	return cmd
}

// historyVerify is sluice history verify.
type historyVerify struct {
	database databaseFlags
	noted    string
	output   form
}

func newHistoryVerify(flags *config.Flags) *cobra.Command {
	v := historyVerify{database: databaseFlags{as: "sluice_app"}}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Tell whether changes were altered, removed or put in afterwards",
		Long: `verify reads the whole history from PostgreSQL and computes its chain of hashes anew. It exits with 1 and tells the first change that does not
follow from the one before it, or that the end is missing.

It prints where the history ends. Note that where nobody who can write to the database can write, and name it the next time by --noted:
whoever can rewrite the whole history can make another chain that is right in itself, but none that leads through what you noted.

Any role that nodes may connect as will do. Without --url or --url-file it is database.url of the configuration. A password stands in the
file named by --url-file, in PGPASSWORD or in ~/.pgpass, and not on the command line.`,
		Example: `  sluice history verify --config /etc/sluice/sluice.toml
  sluice history verify --url-file /run/secrets/database-url --noted "$(cat /mnt/audit/noted)"
  sluice history verify --url postgres://sluice_app@db.internal:5432/sluice?sslmode=verify-full --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return v.run(cmd, flags)
		},
	}
	v.database.addTo(cmd, "the database")
	cmd.Flags().StringVar(&v.noted, "noted", "", "where the history ended at an earlier check: a revision, a colon and the hash")
	v.output.addTo(cmd, "text", "json")
	return cmd
}

func (v *historyVerify) run(cmd *cobra.Command, flags *config.Flags) error {
	var opts postgres.VerifyOptions
	if cmd.Flags().Changed("noted") { // an empty note is a lost one
		noted, err := postgres.ParsePoint(v.noted)
		if err != nil {
			return usageError{fmt.Errorf("--noted: %w", err)}
		}
		opts.Noted = &noted
	}
	database, err := v.database.read(flags)
	if err != nil {
		return err
	}
	db, err := postgres.Open(cmd.Context(), postgres.Options{URL: database, MaxConns: 1})
	if err != nil {
		return err
	}
	defer db.Close()
	var p *progress // a history of one page needs none
	opts.Progress = func(reached, last sluice.Revision) {
		if p == nil {
			p = newProgress(cmd.ErrOrStderr(), checking, int64(last))
		}
		p.reach(int64(reached), int64(last))
	}
	found, err := db.VerifyHistory(cmd.Context(), opts)
	if p != nil {
		if err == nil {
			p.reach(p.total, p.total)
		}
		p.end(err)
	}
	return v.tell(cmd, found, err)
}

// tell prints what was found. A fault of the history is an answer, too, for those who read JSON.
func (v *historyVerify) tell(cmd *cobra.Command, found postgres.Verified, err error) error {
	type fault struct {
		Revision sluice.Revision `json:"revision"`
		Seq      int64           `json:"seq"`
		Text     string          `json:"text"`
	}
	answer := struct {
		Changes int64  `json:"changes"`
		Unused  int64  `json:"unused_revisions"`
		Head    string `json:"head,omitempty"`
		Fault   *fault `json:"fault,omitempty"`
	}{Changes: found.Changes, Unused: found.Unused}
	var broken *postgres.HistoryError
	switch {
	case errors.As(err, &broken):
		answer.Fault = &fault{broken.Revision, broken.Seq, broken.Fault}
	case err != nil:
		return err
	default:
		answer.Head = found.Head.String()
	}
	if v.output.json() {
		return errors.Join(v.output.printValue(cmd.OutOrStdout(), answer), err)
	}
	if err != nil {
		return err
	}
	text := counted(int(found.Changes), "change") + " checked, all as they were written\n"
	if found.Unused > 0 {
		text += counted(int(found.Unused), "revision") + " without a change: somebody raised the revision by hand\n"
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%snote for the next check: %s\n", text, answer.Head)
	return err
}
