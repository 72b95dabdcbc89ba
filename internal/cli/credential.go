package cli

import (
	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/config"
	"github.com/leasehold/leasehold/internal/profile"
)

// ClientSettings settles what a command uses that talks to a server: flags, then variables, then the context, then the
// default; and with it what proves who asks.
func (a *App) ClientSettings(cmd *cobra.Command) (config.Client, error) {
	src := a.Sources(cmd)
	dir, err := a.withContext(&src)
	if err != nil {
		return config.Client{}, Usage("%v", err)
	}
	all, settings, err := config.ForClient(src)
	if err != nil {
		return config.Client{}, Hint(Usage("%v", err), "all settings: leasehold help configuration")
	}
	client := all.Client
	client.Context = src.ContextName
	client.Insecure, _ = cmd.Flags().GetBool(profile.Insecure) // false for a command without it
	origins := map[string]config.Setting{}
	for _, s := range settings {
		origins[s.Key.Name] = s
	}
	ours := sameServer(client, src.Context)
	if origins["token-file"].OfContext() && !ours {
		client.TokenFile = ""
	}
	if ours && src.Context[profile.Insecure] == "true" {
		client.Insecure = true
	}
	if !origins["token-file"].OfFlag() {
		client.TokenVariable = v1.TokenVariable(a.Getenv)
	}
	if err := a.setToken(dir, &client, origins["token-file"]); err != nil {
		return config.Client{}, Usage("%v", err)
	}
	return client, nil
}

// sameServer reports whether a command talks to the server of its context: an address that a flag or a variable gives
// must not get what was meant for another.
func sameServer(client config.Client, context map[string]string) bool {
	theirs, _, err := config.ForClient(config.Sources{Context: context})
	return err == nil && theirs.Client.Server == client.Server
}

// ClientSources is Sources with the context of the command.
func (a *App) ClientSources(cmd *cobra.Command) (config.Sources, error) {
	src := a.Sources(cmd)
	_, err := a.withContext(&src)
	return src, err
}

// withContext adds the context that is named, or is the current one, to the sources of settings.
func (a *App) withContext(src *config.Sources) (profile.Dir, error) {
	name := src.ContextNamed()
	dir, err := profile.UserDir(a.Getenv)
	if err != nil && name == "" {
		return "", nil // a machine without a home has no contexts
	}
	if err != nil {
		return "", err
	}
	contexts, err := dir.Contexts()
	if err != nil {
		return "", err
	}
	if name == "" {
		name = contexts.Current
	}
	if name == "" {
		return dir, nil
	}
	found, ok := contexts.All[name]
	if !ok {
		return "", contexts.Unknown(name)
	}
	src.Context, src.ContextName = found, name
	return dir, nil
}

// setToken settles what proves who asks: the file that a flag names, the environment, the file that the context names,
// or what the person logged in with. A credential of the context is for the context's server alone.
func (a *App) setToken(dir profile.Dir, client *config.Client, file config.Setting) error {
	environ := v1.EnvironToken(a.Getenv)
	switch {
	case file.OfFlag():
		client.Token = v1.TokenFile(client.TokenFile)
	case environ != nil:
		client.Token = environ
	case client.TokenFile != "":
		client.Token = v1.TokenFile(client.TokenFile)
	case dir != "":
		key := profile.Key(client.Context, client.Server)
		found, ok, err := dir.Credential(key, client.Servers)
		if err != nil || !ok {
			return err
		}
		client.Token, client.LoginFlags = dir.Token(key, found, a.Now), found.Login.Flags()
	}
	return nil
}
