// A plugin of the existing protocol, on HashiCorp's go-plugin, with the name, the patterns of scopes and the habits of those that its
// author publishes: a name that Mayfly has a kind of, owners and repositories divided by a slash, a permission that may follow and
// that no pattern states, no constraints, an end an hour away whatever was asked, and a token that is its own external id.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	v1 "creddy/plugin/v1"
)

var handshake = plugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "CREDDY_PLUGIN", MagicCookieValue: "creddy"}

type settings struct {
	AppID          int64  `json:"app_id"`
	PrivateKey     string `json:"private_key_pem"`
	InstallationID int64  `json:"installation_id"`
}

type hub struct {
	v1.UnimplementedPluginServer
	settings *settings
	mutex    sync.Mutex
	alive    map[string]bool
}

func (h *hub) Info(context.Context, *v1.InfoRequest) (*v1.InfoResponse, error) {
	return &v1.InfoResponse{Name: "github", Version: "dev", Description: "Tokens of an app", MinCreddyVersion: "0.4.0"}, nil
}

func (h *hub) Scopes(context.Context, *v1.ScopesRequest) (*v1.ScopesResponse, error) {
	return &v1.ScopesResponse{Scopes: []*v1.Scope{
		{Pattern: "github:*", Description: "Everything", Examples: []string{"github:*", "github:*:read"}},
		{Pattern: "github:<owner>/*", Description: "All of an owner", Examples: []string{"github:myorg/*", "github:myorg/*:read"}},
		{Pattern: "github:<owner>/<repo>", Description: "One repository", Examples: []string{"github:myorg/myrepo", "github:myorg/myrepo:read"}},
	}}, nil
}

func (h *hub) ConfigSchema(context.Context, *v1.ConfigSchemaRequest) (*v1.ConfigSchemaResponse, error) {
	return &v1.ConfigSchemaResponse{Fields: []*v1.ConfigField{
		{Name: "app_id", Type: "int", Description: "Of the app", Required: true},
		{Name: "private_key_pem", Type: "file", Description: "Its key", Required: true},
		{Name: "installation_id", Type: "int", Description: "Found if it is not set"},
		{Name: "api_url", Type: "string", Description: "Of another server"},
	}}, nil
}

func (h *hub) Constraints(context.Context, *v1.ConstraintsRequest) (*v1.ConstraintsResponse, error) {
	return &v1.ConstraintsResponse{}, nil
}

func (h *hub) Configure(_ context.Context, in *v1.ConfigureRequest) (*v1.ConfigureResponse, error) {
	var read settings
	if err := json.Unmarshal([]byte(in.ConfigJson), &read); err != nil {
		return &v1.ConfigureResponse{Error: err.Error()}, nil
	}
	h.settings = &read
	return &v1.ConfigureResponse{}, nil
}

func (h *hub) Validate(context.Context, *v1.ValidateRequest) (*v1.ValidateResponse, error) {
	return &v1.ValidateResponse{Valid: h.settings != nil}, nil
}

func (h *hub) GetCredential(_ context.Context, in *v1.GetCredentialRequest) (*v1.GetCredentialResponse, error) {
	rest := strings.TrimPrefix(in.Scope, "github:")
	if rest == in.Scope || rest == "" {
		return &v1.GetCredentialResponse{Error: "invalid scope " + in.Scope}, nil
	}
	secret := make([]byte, 20)
	if _, err := rand.Read(secret); err != nil {
		return &v1.GetCredentialResponse{Error: err.Error()}, nil
	}
	token := "ghs_" + hex.EncodeToString(secret)
	h.mutex.Lock()
	h.alive[token] = true
	h.mutex.Unlock()
	return &v1.GetCredentialResponse{
		Value:         token,
		ExpiresAtUnix: time.Now().Add(time.Hour).Unix(),
		ExternalId:    token,
		Metadata: map[string]string{
			"installation_id": fmt.Sprint(h.settings.InstallationID),
			"read_only":       fmt.Sprint(strings.HasSuffix(rest, ":read")),
			"asked":           in.Scope + " of " + in.Agent.Name,
		},
	}, nil
}

func (h *hub) RevokeCredential(_ context.Context, in *v1.RevokeCredentialRequest) (*v1.RevokeCredentialResponse, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if !h.alive[in.ExternalId] {
		return &v1.RevokeCredentialResponse{Error: "no such token"}, nil
	}
	delete(h.alive, in.ExternalId)
	return &v1.RevokeCredentialResponse{Revoked: true}, nil
}

func (h *hub) MatchScope(_ context.Context, in *v1.MatchScopeRequest) (*v1.MatchScopeResponse, error) {
	return &v1.MatchScopeResponse{Matches: strings.HasPrefix(in.Scope, "github:")}, nil
}

type served struct{ plugin.NetRPCUnsupportedPlugin }

func (served) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	v1.RegisterPluginServer(server, &hub{alive: map[string]bool{}})
	return nil
}

func (served) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (interface{}, error) {
	return nil, errors.New("this is a plugin, not its host")
}

func main() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: handshake,
		Plugins:         map[string]plugin.Plugin{"credential": served{}},
		GRPCServer:      plugin.DefaultGRPCServer,
	})
}
