import type { UseCase } from './cases.ts'

const list = (text: string) => text.trim().split(/\s*\n\s*/)

/** As `USE_CASES`, of the kinds that are recipes. */
export const RECIPE_CASES: Readonly<Record<string, UseCase>> = {
  gitlab: {
    scopes: ['acme/app:api', 'acme/app:write_repository'],
    origin: 'https://gitlab.com',
    ordinary: list(`
      GET /api/v4/projects/acme%2Fapp
      GET /api/v4/projects/278964/issues
      POST /api/v4/projects/acme%2Fapp/merge_requests
      PUT /api/v4/projects/acme%2Fapp/repository/files/src%2Fmain.go
      GET /api/v4/projects/acme%2Fapp/repository/files/src%2Fmain.go/raw
      GET /acme/app.git/info/refs
      POST /acme/app.git/git-receive-pack
      GET /api/v4/packages/npm/@acme%2Flib
      PUT /api/v4/projects/acme%2Fapp/packages/npm/@acme%2flib
      GET /api/v4/projects/1/packages/pypi/simple/lib`),
    makes: list(`
      POST /api/v4/projects/acme%2Fapp/access_tokens
      POST /api/v4/projects/acme%2Fapp/Access_Tokens/
      POST /api/v4/projects/acme%2Fapp/access_tokens.json
      POST /api/v4/projects/acme%2Fapp/deploy_tokens.json/
      POST /api/v4/projects/acme%2Fapp/access_tokens/1/rotate
      POST /api/v4/projects/acme%2Fapp/deploy_tokens
      POST /api/v4/projects/acme%2Fapp/deploy_keys
      POST /api/v4/projects/acme%2Fapp/triggers
      POST /api/v4/projects/acme%2Fapp/runners/reset_registration_token
      POST /api/v4/projects/acme%2Fapp/cluster_agents/1/tokens
      POST /api/v4/projects/acme%2Fapp/variables
      GET /api/v4/projects/acme%2Fapp/variables
      POST /api/v4/users/1/personal_access_tokens
      POST /api/v4/users/1/impersonation_tokens
      POST /api/v4/personal_access_tokens
      POST /api/v4/personal_access_tokens/self/rotate
      POST /api/v4/user/keys
      POST /api/v4/user/runners
      POST /api/v4/groups/acme/access_tokens
      POST /api/v4/projects/1/issues
      POST /api/graphql
      GET /api/v4/projects/acme%2Fapp/packages/conan/v1/users/authenticate
      GET /jwt/auth
      POST /oauth/token
      POST /acme/other.git/git-upload-pack`),
    params: { id: 'acme%2Fapp' },
  },
  gitea: {
    scopes: [
      'repository:write',
      'issue:write',
      'organization:write',
      'package:write',
      'user:read',
      'admin:read',
    ],
    origin: 'https://git.example.com',
    ordinary: list(`
      GET /api/v1/version
      GET /api/v1/repos/acme/shop
      POST /api/v1/repos/acme/shop/issues
      PUT /api/v1/repos/acme/shop/contents/README.md
      GET /api/v1/user
      GET /api/v1/admin/users
      GET /acme/shop.git/info/refs
      POST /acme/shop.git/git-receive-pack
      GET /api/packages/acme/npm/@acme%2flib
      PUT /api/packages/acme/npm/@acme%2flib
      GET /api/packages/acme/pypi/simple/lib`),
    makes: list(`
      POST /api/v1/users/acme/tokens
      GET /api/v1/users/acme/tokens
      POST /api/v1/user/keys
      POST /api/v1/user/gpg_keys
      POST /api/v1/user/applications/oauth2
      POST /api/v1/admin/users/acme/keys
      POST /api/v1/admin/users
      POST /api/v1/repos/acme/shop/keys
      POST /api/v1/repos/acme/shop/hooks
      PUT /api/v1/repos/acme/shop/actions/secrets/X
      GET /api/v1/repos/acme/shop/actions/runners/registration-token
      POST /api/v1/repos/acme/shop/actions/runners/registration-token
      GET /api/v1/orgs/acme/actions/runners/registration-token
      GET /api/v1/admin/runners/registration-token
      GET /api/v1/user/actions/runners/registration-token
      POST /api/v1/repos/acme/shop/push_mirrors
      POST /login/oauth/access_token
      GET /v2/token`),
    params: { username: 'acme', owner: 'acme', repo: 'shop' },
    harmless: /\/subscriptions|\/signing-key/,
  },
  artifactory: {
    scopes: ['group:dev'],
    origin: 'https://acme.jfrog.io',
    ordinary: list(`
      GET /artifactory/api/system/ping
      PUT /artifactory/libs/app.jar;build=7
      GET /artifactory/api/npm/npm-all/@acme%2flib
      GET /artifactory/api/pypi/pypi/simple/lib/
      POST /artifactory/api/search/aql`),
    makes: list(`
      POST /access/api/v1/tokens
      POST /artifactory/api/security/token
      POST /artifactory/api/security;x/token
      POST /artifactory/;/api/security/token
      POST /artifactory/api/security%2Ftoken
      PUT /artifactory/api/security/apiKey
      GET /artifactory/api/docker/images/v2/token
      GET /artifactory/api/conan/conan-all/v2/users/authenticate
      GET /artifactory/api/npm/auth
      PUT /artifactory/api/npm/npm-all/-/user/org.couchdb.user:x
      GET /artifactory/api/system/configuration
      POST /artifactory/api/signed/url`),
  },
  cloudflare: {
    scopes: ['z1:dns_write', 'z1:cache_purge', 'z2:dns_read'],
    origin: 'https://api.cloudflare.com',
    ordinary: list(`
      GET /client/v4/zones
      GET /client/v4/user/tokens/verify
      POST /client/v4/zones/z1/dns_records
      DELETE /client/v4/zones/z1/dns_records/1
      GET /client/v4/zones/z2/dns_records
      POST /client/v4/zones/z1/purge_cache`),
    makes: list(`
      POST /client/v4/accounts/023e105f4ecef8ad9ca31a8372d0c353/tokens
      POST /client/v4/user/tokens
      PUT /client/v4/user/tokens/1/value
      POST /client/v4/accounts/1/access/service_tokens
      POST /client/v4/zones/z2/dns_records
      POST /client/v4/zones/z3/purge_cache`),
    params: { account_id: '023e105f4ecef8ad9ca31a8372d0c353' },
  },
  doppler: {
    config: { configs: ['backend/prd'] },
    scopes: ['backend/prd:write'],
    origin: 'https://api.doppler.com',
    ordinary: list(`
      GET /v3/configs/config/secrets/download
      GET /v3/configs/config/secret
      POST /v3/configs/config/secrets
      GET /v3/me`),
    makes: list(`
      POST /v3/configs/config/tokens
      POST /v3/configs/config/dynamic_secrets/dynamic_secret/leases
      POST /v3/workplace/service_accounts/service_account/a/tokens
      POST /v3/auth/oidc`),
    // They are what the token is for.
    harmless: /\/configs\/config\/secrets?$/,
  },
  elasticsearch: {
    scopes: ['logs-*:write', 'shop:read'],
    origin: 'https://es.example.com:9200',
    ordinary: list(`
      GET /
      GET /_cluster/health
      POST /logs-2026/_doc
      POST /_bulk
      POST /shop/_search
      PUT /logs-2026/_mapping`),
    makes: list(`
      POST /_security/api_key
      PUT /_security/api_key
      POST /_security/oauth2/token
      POST /_security/service/elastic/fleet-server/credential/token/x
      PUT /_security/user/x
      POST /_security/user/_has_privileges
      POST /shop/_doc
      PUT /_ingest/pipeline/p`),
    harmless: /_analyze/,
  },
  grafana: {
    scopes: ['admin'],
    origin: 'https://grafana.example.com',
    ordinary: list(`
      GET /api/health
      GET /api/search
      POST /api/ds/query
      POST /api/dashboards/db
      PUT /api/folders/f
      POST /api/annotations
      POST /api/datasources`),
    makes: list(`
      POST /api/serviceaccounts
      POST /api/serviceaccounts/1/tokens
      POST /api/auth/keys
      POST /api/user/auth-tokens
      POST /api/admin/users
      POST /api/org/invites
      POST /api/snapshots
      POST /api/dashboards/uid/u/public-dashboards
      POST /api/cloudmigration/token
      POST /api/plugins/p/resources/token
      POST /apis/iam.grafana.app/v0alpha1/namespaces/default/serviceaccounts
      POST /login`),
    harmless: /\/revoke-auth-token/,
  },
  sonarqube: {
    scopes: ['shop:analyze'],
    origin: 'https://sonarqube.example.com',
    ordinary: list(`
      GET /api/server/version
      GET /batch/index
      POST /api/ce/submit
      GET /api/ce/task
      GET /api/qualitygates/project_status`),
    makes: list(`
      POST /api/user_tokens/generate
      POST /api/user_tokens;x=1/generate
      POST /api/webhooks/create
      POST /api/users/change_password`),
  },
  'terraform-cloud': {
    scopes: ['team-1'],
    origin: 'https://app.terraform.io',
    ordinary: list(`
      GET /.well-known/terraform.json
      GET /api/v2/organizations/acme/workspaces
      POST /api/v2/runs
      GET /api/v2/account/details
      POST /api/v2/workspaces/ws-1/state-versions
      PATCH /api/v2/workspaces/ws-1`),
    makes: list(`
      POST /api/v2/teams/team-1/authentication-tokens
      POST /api/v2/teams/team-1/authentication-token
      POST /api/v2/organizations/acme/authentication-token
      POST /api/v2/organizations/acme/authentication-token.json
      POST /api/v2/users/u/authentication-tokens
      POST /api/v2/agent-pools/p/authentication-tokens
      POST /api/v2/organizations/acme/ssh-keys
      POST /api/v2/organizations/acme/oauth-clients
      POST /api/v2/organizations/acme/metrics-tokens
      POST /api/v2/workspaces/ws-1/vars
      POST /api/v2/workspaces/ws-1/notification-configurations`),
    harmless: /\/relationships\/ssh-key|\/hyok-|gpg-keys|token-ttl-policies/,
  },
}
