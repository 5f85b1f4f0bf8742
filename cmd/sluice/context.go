package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"
)

func newContext() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "context",
		Short: "Name the clusters you work with, and choose one",
		Long: `A context is a name for a cluster: the address of its admin listener, the file that holds your token, certificates. Commands go by
the current context, or by the one that --context or SLUICE_CONTEXT names. What --admin, --server, SLUICE_ADMIN and SLUICE_SERVER name
is asked instead, and then without anything of the context, so that no token reaches another cluster than its own.

Contexts are kept in $XDG_CONFIG_HOME/sluice/config.toml, or ~/.config/sluice/config.toml.`,
		Example: `  sluice context set prod --admin https://sluice.internal:9090 --token-file ~/.sluice-prod
  sluice context use prod
  sluice context list`,
	}
	cmd.AddCommand(newContextList(), newContextUse(), newContextSet(), newContextDelete())
	return cmd
}

// newContextList returns sluice context list.
func newContextList() *cobra.Command {
	var output form
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the contexts and mark the current one",
		Example: "  sluice context list\n  sluice context list --output json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := contextsPath()
			if err != nil {
				return err
			}
			known, err := readContexts(path)
			if err != nil {
				return err
			}
			if output.value != "table" {
				return output.printValue(cmd.OutOrStdout(), known)
			}
			return known.print(cmd.OutOrStdout())
		},
	}
	output.addTo(cmd, "table", "json", "yaml")
	return cmd
}

func (c contexts) print(w io.Writer) error {
	t := newTable("", "NAME", "ADMIN", "SERVER", "NAMESPACE", "TOKEN FILE")
	for _, name := range c.names() {
		mark, k := "", c.Known[name]
		if name == c.Current {
			mark = "*"
		}
		t.row(mark, name, k.Admin, k.Server, k.Namespace, k.TokenFile)
	}
	return t.print(w)
}

// editContexts reads the contexts, lets them be changed, and writes them.
func editContexts(change func(c *contexts) error) error {
	path, err := contextsPath()
	if err != nil {
		return err
	}
	c, err := readContexts(path)
	if err != nil {
		return err
	}
	if err := change(&c); err != nil {
		return err
	}
	return c.write(path)
}

func newContextUse() *cobra.Command {
	return &cobra.Command{
		Use:               "use NAME",
		Short:             "Make a context the current one",
		Example:           "  sluice context use prod",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeContext,
		RunE: func(_ *cobra.Command, args []string) error {
			return editContexts(func(c *contexts) error {
				_, err := c.find(args[0])
				c.Current = args[0]
				return err
			})
		},
	}
}

func newContextSet() *cobra.Command {
	var set cluster
	files := []*string{&set.TokenFile, &set.CAFile, &set.CertFile, &set.KeyFile}
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Make a context, or change what it says",
		Long: `set makes a context, or changes the fields that are named; an empty value takes one out. The first context becomes the current
one.`,
		Example: `  sluice context set prod --admin https://sluice.internal:9090 --ca-file ca.pem --token-file prod.token
  sluice context set prod --namespace payments`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeContext,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, file := range files {
				if err := absolute(file); err != nil {
					return err
				}
			}
			if args[0] == "" {
				return usageError{errors.New("a context has a name")}
			}
			return editContexts(func(c *contexts) error {
				if len(c.Known) == 0 {
					c.Current = args[0]
				}
				c.Known[args[0]] = set.over(c.Known[args[0]], cmd.Flags().Changed)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&set.Admin, "admin", "", "the admin listener, such as https://sluice.internal:9090")
	cmd.Flags().StringVar(&set.Server, "server", "", "the HTTP listener, for check and explain")
	cmd.Flags().StringVar(&set.TokenFile, "token-file", "", "a file that holds your token")
	cmd.Flags().StringVar(&set.CAFile, "ca-file", "", "certificates that sign the nodes' own; default: the system's")
	cmd.Flags().StringVar(&set.CertFile, "cert-file", "", "certificate to show to nodes that ask for one")
	cmd.Flags().StringVar(&set.KeyFile, "key-file", "", "the key of --cert-file")
	cmd.Flags().StringVar(&set.Namespace, "namespace", "", "the namespace that commands mean where none is named")
	return cmd
}

// over returns what there was with the fields that were named.
func (k cluster) over(before cluster, named func(flag string) bool) cluster {
	for _, f := range []struct {
		flag string
		from string
		to   *string
	}{
		{"admin", k.Admin, &before.Admin},
		{"server", k.Server, &before.Server},
		{"token-file", k.TokenFile, &before.TokenFile},
		{"ca-file", k.CAFile, &before.CAFile},
		{"cert-file", k.CertFile, &before.CertFile},
		{"key-file", k.KeyFile, &before.KeyFile},
		{"namespace", k.Namespace, &before.Namespace},
	} {
		if named(f.flag) {
			*f.to = f.from
		}
	}
	return before
}

// absolute makes a path one that means the same in every folder.
func absolute(path *string) error {
	if *path == "" {
		return nil
	}
	full, err := filepath.Abs(*path)
	if err != nil {
		return fmt.Errorf("%s: %w", *path, err)
	}
	*path = full
	return nil
}

func newContextDelete() *cobra.Command {
	return &cobra.Command{
		Use:               "delete NAME",
		Short:             "Forget a context",
		Example:           "  sluice context delete old",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeContext,
		RunE: func(_ *cobra.Command, args []string) error {
			return editContexts(func(c *contexts) error {
				_, err := c.find(args[0])
				delete(c.Known, args[0])
				if c.Current == args[0] {
					c.Current = ""
				}
				return err
			})
		},
	}
}

// completeContext offers the names of contexts to shells, for the one argument of a command.
func completeContext(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeContextFlag(cmd, args, begun)
}

// completeContextFlag offers them for --context.
func completeContextFlag(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	path, err := contextsPath()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	known, _ := readContexts(path)
	return known.names(), cobra.ShellCompDirectiveNoFileComp
}
