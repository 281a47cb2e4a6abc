// A plugin of the existing protocol, on HashiCorp's go-plugin: users of a Redis server.
//
// Like the plugins of others it ends itself when a request has no agent, names its users after the agent and not after a
// credential, and knows its configuration only until its process ends.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	v1 "creddy/plugin/v1"
)

var handshake = plugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "CREDDY_PLUGIN", MagicCookieValue: "creddy"}

type settings struct {
	Address  string   `json:"address"`
	Username string   `json:"username"`
	Password string   `json:"password"`
	DelayMs  int      `json:"delay_ms"`
	Commands []string `json:"commands"`
	Notes    string   `json:"notes"`
	Forever  bool     `json:"forever"`
}

type redis struct {
	v1.UnimplementedPluginServer
	settings *settings
}

func (r *redis) Info(context.Context, *v1.InfoRequest) (*v1.InfoResponse, error) {
	return &v1.InfoResponse{Name: "creddy-redis", Version: "0.3.1", Description: "Users of a Redis server", MinCreddyVersion: "0.1.0"}, nil
}

func (r *redis) Scopes(context.Context, *v1.ScopesRequest) (*v1.ScopesResponse, error) {
	return &v1.ScopesResponse{Scopes: []*v1.Scope{
		{Pattern: "creddy-redis:*:read", Description: "Read the keys that begin with a prefix", Examples: []string{"creddy-redis:shop:read"}},
	}}, nil
}

func (r *redis) ConfigSchema(context.Context, *v1.ConfigSchemaRequest) (*v1.ConfigSchemaResponse, error) {
	return &v1.ConfigSchemaResponse{Fields: []*v1.ConfigField{
		{Name: "address", Type: "string", Description: "Host and port", Required: true},
		{Name: "username", Type: "string", Description: "May change users", Default: "default"},
		{Name: "password", Type: "secret", Description: "Of that user", Required: true},
		{Name: "delay_ms", Type: "int", Description: "Waits so long after it made a user", Default: "0"},
		{Name: "commands", Type: "array", Description: "Further rules of its users"},
		{Name: "notes", Type: "file", Description: "Is not used"},
		{Name: "forever", Type: "bool", Description: "Says of no user when it ends", Default: "false"},
	}}, nil
}

func (r *redis) Constraints(context.Context, *v1.ConstraintsRequest) (*v1.ConstraintsResponse, error) {
	return &v1.ConstraintsResponse{HasConstraints: true, MinTtlSeconds: 10, MaxTtlSeconds: 86400, Description: "Users of more than a day are not wanted"}, nil
}

func (r *redis) Configure(_ context.Context, in *v1.ConfigureRequest) (*v1.ConfigureResponse, error) {
	var read settings
	if err := json.Unmarshal([]byte(in.ConfigJson), &read); err != nil {
		return &v1.ConfigureResponse{Error: err.Error()}, nil
	}
	if !strings.Contains(read.Address, ":") {
		return &v1.ConfigureResponse{Error: "address: missing port in " + read.Address}, nil
	}
	r.settings = &read
	return &v1.ConfigureResponse{}, nil
}

func (r *redis) Validate(ctx context.Context, _ *v1.ValidateRequest) (*v1.ValidateResponse, error) {
	if _, err := r.call(ctx, "ACL", "WHOAMI"); err != nil {
		return &v1.ValidateResponse{Error: err.Error()}, nil
	}
	return &v1.ValidateResponse{Valid: true}, nil
}

func (r *redis) GetCredential(ctx context.Context, in *v1.GetCredentialRequest) (*v1.GetCredentialResponse, error) {
	// As others do it: without an agent this is a null pointer, and the process ends.
	agent := in.Agent.Name + "-" + in.Agent.Id[len(in.Agent.Id)-6:]
	words := strings.Split(in.Scope, ":")
	if len(words) != 3 || words[0] != "creddy-redis" || words[2] != "read" {
		return &v1.GetCredentialResponse{Error: "unknown scope " + in.Scope}, nil
	}
	secret := make([]byte, 36)
	if _, err := rand.Read(secret); err != nil {
		return &v1.GetCredentialResponse{Error: err.Error()}, nil
	}
	user := "creddy-" + agent + "-" + hex.EncodeToString(secret[:4])
	password := base64.RawURLEncoding.EncodeToString(secret[4:])
	rule := []string{"ACL", "SETUSER", user, "reset", "on", fmt.Sprintf("#%x", sha256.Sum256([]byte(password))), "%R~" + words[1] + "*", "+@read", "+ping"}
	// What was begun is done, even if the host has gone away.
	if _, err := r.call(context.Background(), append(rule, r.settings.Commands...)...); err != nil {
		return &v1.GetCredentialResponse{Error: err.Error()}, nil
	}
	time.Sleep(time.Duration(r.settings.DelayMs) * time.Millisecond)
	out := &v1.GetCredentialResponse{
		Value:      fmt.Sprintf("redis://%s:%s@%s/0", user, password, r.settings.Address),
		ExternalId: user,
		Metadata:   map[string]string{"username": user, "prefix": words[1], "asked": in.Parameters["asked"]},
	}
	if !r.settings.Forever {
		out.ExpiresAtUnix = time.Now().Unix() + in.TtlSeconds
	}
	return out, nil
}

func (r *redis) RevokeCredential(ctx context.Context, in *v1.RevokeCredentialRequest) (*v1.RevokeCredentialResponse, error) {
	if !strings.HasPrefix(in.ExternalId, "creddy-") {
		return &v1.RevokeCredentialResponse{Error: "no user of ours: " + in.ExternalId}, nil
	}
	if _, err := r.call(ctx, "ACL", "DELUSER", in.ExternalId); err != nil {
		return &v1.RevokeCredentialResponse{Error: err.Error()}, nil
	}
	return &v1.RevokeCredentialResponse{Revoked: true}, nil
}

func (r *redis) MatchScope(_ context.Context, in *v1.MatchScopeRequest) (*v1.MatchScopeResponse, error) {
	words := strings.Split(in.Scope, ":")
	return &v1.MatchScopeResponse{Matches: len(words) == 3 && words[0] == "creddy-redis" && words[2] == "read"}, nil
}

// call sends one command on a connection of its own, after the password.
func (r *redis) call(ctx context.Context, command ...string) (string, error) {
	if r.settings == nil {
		return "", errors.New("not configured")
	}
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", r.settings.Address)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	reader := bufio.NewReader(connection)
	if _, err := send(connection, reader, "AUTH", r.settings.Username, r.settings.Password); err != nil {
		// Not what anybody should do: the text has the password.
		return "", fmt.Errorf("AUTH %s %s: %v", r.settings.Username, r.settings.Password, err)
	}
	return send(connection, reader, command...)
}

// send understands the replies of RESP2 that the commands above have.
func send(connection io.Writer, reader *bufio.Reader, words ...string) (string, error) {
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(connection, text); err != nil {
		return "", err
	}
	line, err := reader.ReadString('\n')
	if err != nil {
		return "", err
	}
	rest := strings.TrimRight(line[1:], "\r\n")
	switch line[0] {
	case '-':
		return "", errors.New(rest)
	case '$':
		size, _ := strconv.Atoi(rest)
		body := make([]byte, size+2)
		_, err := io.ReadFull(reader, body)
		return string(body[:size]), err
	}
	return rest, nil
}

type served struct{ plugin.NetRPCUnsupportedPlugin }

func (served) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	v1.RegisterPluginServer(server, &redis{})
	return nil
}

func (served) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (interface{}, error) {
	return nil, errors.New("this is a plugin, not its host")
}

func main() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: handshake,
		Plugins:         map[string]plugin.Plugin{"plugin": served{}},
		GRPCServer:      plugin.DefaultGRPCServer,
	})
}
