/**
 * What programs do with the credentials of a kind, and what makes credentials there, each as `METHOD path` below the origin of the
 * use, or with the whole address. Followed from the descriptions of the vendors.
 */
export interface UseCase {
  /** In place of the example of the kind. */
  readonly config?: Readonly<Record<string, unknown>>
  /** The widest that the kind has. */
  readonly scopes: readonly string[]
  /** Where paths begin. */
  readonly origin: string
  readonly ordinary: readonly string[]
  readonly makes: readonly string[]
  /** Of the parameters in descriptions: `{id}` is a project here. Others become `x`. */
  readonly params?: Readonly<Record<string, string>>
  /** Of operations whose names are about keys or tokens and that make none. */
  readonly harmless?: RegExp
}

const list = (text: string) => text.trim().split(/\s*\n\s*/)

export const USE_CASES: Readonly<Record<string, UseCase>> = {
  github: {
    scopes: ['acme/shop', 'acme/web-*'],
    origin: 'https://api.github.com',
    ordinary: list(`
      GET /repos/acme/shop
      GET /repos/Acme/Shop/issues
      POST /repos/acme/shop/issues
      PUT /repos/acme/shop/contents/README.md
      PATCH /repos/acme/shop/pulls/7
      DELETE /repos/acme/shop/git/refs/heads/topic
      POST /repos/acme/web-front/actions/workflows/ci.yml/dispatches
      GET /repositories/1300192/issues
      GET /search/code
      GET /rate_limit
      GET https://github.com/acme/shop.git/info/refs
      POST https://github.com/acme/shop.git/git-upload-pack
      POST https://github.com/acme/shop/git-receive-pack
      GET https://raw.githubusercontent.com/acme/shop/main/README.md
      POST https://uploads.github.com/repos/acme/shop/releases/1/assets`),
    makes: list(`
      POST /repos/acme/shop/keys
      POST /repos/acme/shop/keys/
      POST /repos/acme/shop/Keys
      POST /user/keys
      POST /user/gpg_keys
      POST /user/ssh_signing_keys
      POST /repos/acme/shop/actions/runners/registration-token
      POST /repos/acme/shop/actions/runners/generate-jitconfig
      PUT /repos/acme/shop/actions/secrets/DEPLOY
      PUT /repos/acme/shop/environments/prod/secrets/DEPLOY
      PUT /repos/acme/shop/dependabot/secrets/DEPLOY
      POST /repos/acme/shop/hooks
      POST /orgs/acme/actions/runners/registration-token
      POST /app/installations/1/access_tokens
      POST /applications/x/token
      DELETE /installation/token
      POST /graphql
      GET /repos/acme/shop/secret-scanning/alerts
      GET /repositories/1300192/secret-scanning/alerts
      GET /repos/acme/other
      POST /repos/other/shop/issues
      POST https://github.com/login/oauth/access_token
      POST https://github.com/acme/other.git/git-upload-pack`),
    params: { owner: 'acme', repo: 'shop', template_owner: 'acme', template_repo: 'shop' },
  },
  anthropic: {
    scopes: ['default'],
    origin: 'https://api.anthropic.com',
    ordinary: list(`
      POST /v1/messages
      POST /v1/messages/count_tokens
      GET /v1/messages/batches/b1/results
      GET /v1/models
      POST /v1/files
      POST /v1/sessions/s1/events`),
    makes: list(`
      POST /v1/oauth/token
      POST /v1/organizations/service_accounts
      POST /v1/organizations/api_keys/k1
      POST /v1/vaults/v1/credentials
      GET /v1/environments/e1/work/poll
      GET /api/oauth/profile`),
    harmless: /\/count_tokens|^\S+ \/v1\/sessions/,
  },
  openai: {
    scopes: ['proj_abc'],
    origin: 'https://api.openai.com',
    ordinary: list(`
      POST /v1/responses
      POST /v1/responses/input_tokens
      POST /v1/chat/completions
      GET /v1/models
      GET /v1/realtime
      DELETE /v1/files/f1`),
    makes: list(`
      POST /v1/organization/projects/proj_abc/service_accounts
      POST /v1/organization/admin_api_keys
      GET /v1/organization/usage/completions
      POST /v1/realtime/client_secrets
      POST /v1/realtime/sessions
      POST /v1/chatkit/sessions
      PUT /v1/files/f1
      GET /dashboard/billing
      GET /`),
    harmless: /\/input_tokens|\/chatkit\/sessions\/[^/]+$/,
  },
  kubernetes: {
    config: {
      server: 'https://k8s.example.com:6443',
      namespaces: ['shop', 'other'],
      roles: ['view', 'admin'],
      local: false,
    },
    scopes: ['shop'],
    origin: 'https://k8s.example.com:6443',
    ordinary: list(`
      GET /api
      GET /apis/apps/v1
      GET /openapi/v2
      GET /api/v1/namespaces/shop/pods
      GET /api/v1/namespaces/shop/pods/web-1/log
      POST /api/v1/namespaces/shop/pods
      PATCH /apis/apps/v1/namespaces/shop/deployments/web
      DELETE /api/v1/namespaces/shop/configmaps/c
      POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews`),
    makes: list(`
      POST /api/v1/namespaces/shop/serviceaccounts/default/token
      POST /api/v1/namespaces/shop/serviceaccounts
      POST /api/v1/namespaces/shop/secrets
      GET /api/v1/namespaces/shop/secrets/db
      GET /api/v1/watch/namespaces/shop/secrets
      POST /apis/certificates.k8s.io/v1/certificatesigningrequests
      POST /apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings
      POST /api/v1/namespaces/shop/pods/web-1/exec
      GET /api/v1/namespaces/shop/services/web/proxy/x
      POST /apis/authentication.k8s.io/v1/tokenreviews
      GET /api/v1/namespaces/other/pods
      GET /api/v1/nodes`),
    params: { namespace: 'shop' },
  },
  vault: {
    config: { address: 'https://vault.example.com:8200', policies: ['app'], local: false, auth: 'approle' },
    scopes: ['app'],
    origin: 'https://vault.example.com:8200',
    ordinary: list(`
      GET /v1/auth/token/lookup-self
      POST /v1/auth/token/renew-self
      GET /v1/secret/data/app/db
      PUT /v1/team/data/app/db
      LIST /v1/team/metadata/app
      GET /v1/kv/app
      POST /v1/transit/encrypt/app
      GET /v1/sys/health
      GET /v1/sys/internal/ui/mounts/secret`),
    makes: list(`
      POST /v1/auth/token/create
      POST /v1/auth/token/create-orphan
      POST /v1/auth/token/create/data
      POST /v1/auth/approle/login
      POST /v1/auth/data/login
      POST /v1/auth/approle/role/app/secret-id
      GET /v1/database/creds/app
      GET /v1/database/creds/data
      GET /v1/aws/sts/metadata
      POST /v1/pki/issue/data
      POST /v1/ssh/sign/app
      GET /v1/transit/export/encryption-key/app
      POST /v1/transit/datakey/plaintext/app
      PUT /v1/sys/generate-root/attempt
      POST /v1/sys/wrapping/unwrap
      POST /v1/sys/wrapping/wrap
      POST /v1/auth%2Ftoken%2Fcreate
      GET /v1/identity/oidc/token/app`),
    // The engines of stored secrets, of encryption, and what is asked of a token.
    harmless:
      /\/v1\/(x\/(data|metadata|delete|undelete|destroy|subkeys)\/|x\/x$|cubbyhole\/|auth\/token\/(lookup|renew|revoke))|\/lookup-self/,
  },
  registry: {
    config: { address: 'https://registry.example.com', leeway: 60, local: false },
    scopes: ['team/app:push', 'base:pull'],
    origin: 'https://registry.example.com',
    ordinary: list(`
      GET /v2/
      HEAD /v2/team/app/manifests/latest
      POST /v2/team/app/blobs/uploads/
      PATCH /v2/team/app/blobs/uploads/1
      PUT /v2/team/app/manifests/latest
      GET /v2/base/blobs/sha256:0`),
    makes: list(`
      PUT /v2/base/manifests/latest
      DELETE /v2/team/app/manifests/latest
      GET /v2/_catalog
      GET /v2/team/other/manifests/latest
      GET /v2/base/other/manifests/latest`),
  },
  aws: {
    scopes: ['*'],
    origin: 'https://bucket.s3.eu-west-1.amazonaws.com',
    ordinary: list(`
      GET /key
      PUT /a%2Fb//c
      POST https://dynamodb.eu-west-1.amazonaws.com/
      POST https://sqs.eu-west-1.amazonaws.com/1/queue`),
    makes: list(`
      GET https://1.s3-control.eu-west-1.amazonaws.com/v20180820/accessgrantsinstance/dataaccess
      GET https://amazonaws.com.evil.example/
      GET https://evilamazonaws.com/`),
  },
  azure: {
    config: { resources: ['management.azure.com', 'graph.microsoft.com'], local: false },
    scopes: ['management.azure.com', 'graph.microsoft.com'],
    origin: 'https://management.azure.com',
    ordinary: list(`
      GET /subscriptions
      GET /subscriptions/s/resourcegroups/g/providers/Microsoft.Compute/virtualMachines/m
      GET /subscriptions/s/resourceGroups/g/providers/Microsoft.Web/sites/a/functions/f
      PUT /subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/n
      GET https://graph.microsoft.com/v1.0/users
      GET https://graph.microsoft.com/v1.0/users('u')/memberOf
      GET https://graph.microsoft.com/v1.0/servicePrincipals/s
      GET https://graph.microsoft.com/v1.0/deviceManagement/managedDevices
      GET https://graph.microsoft.com/v1.0/deviceManagement/managedDevices/d`),
    makes: list(`
      POST /subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/a/listKeys
      POST /subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/a/LISTKEYS
      GET /subscriptions/s/resourceGroups/g/providers/microsoft.documentdb/databaseAccounts/a/readonlykeys
      GET /subscriptions/s/resourceGroups/g/providers/Microsoft.Web/sites/a/functions/admin/token
      GET /subscriptions/s/resourceGroups/g/providers/microsoft.web/sites/a/slots/b/Functions/admin/token
      GET /subscriptions/s/resourceGroups/g/providers/Microsoft.Web/sites/a/hostruntime/admin/host/systemkeys
      GET /subscriptions/s/resourceGroups/g/providers/Microsoft.Network/connections/c/sharedkey
      GET /subscriptions/s/resourceGroups/g/providers/Microsoft.Automation/automationAccounts/a/agentRegistrationInformation
      PUT /subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i
      PUT /subscriptions/s/resourceGroups/g/providers/microsoft.managedidentity/userAssignedIdentities/i
      PUT /subscriptions/s/resourceGroups/g/providers/Microsoft.Resources/deployments/d
      PUT /subscriptions/s/resourceGroups/g/providers/a/b/c/providers/Microsoft.Authorization/roleAssignments/r
      POST /batch
      POST https://graph.microsoft.com/v1.0/applications/a/addPassword
      POST https://graph.microsoft.com/v1.0/$batch
      GET https://graph.microsoft.com/v1.0/directory/deviceLocalCredentials/d
      GET https://graph.microsoft.com/v1.0/directory/deviceLocalCredentials('d')
      GET https://graph.microsoft.com/v1.0/DeviceLocalCredentials('d')
      GET https://graph.microsoft.com/v1.0/informationProtection/bitlocker/recoveryKeys('k')
      GET https://graph.microsoft.com/v1.0/servicePrincipals/s/synchronization/secrets
      GET https://graph.microsoft.com/v1.0/servicePrincipals('s')/synchronization/secrets
      GET https://graph.microsoft.com/beta/deviceManagement/managedDevices/d/getFileVaultKey
      GET https://graph.microsoft.com/beta/deviceManagement/managedDevices('d')/microsoft.graph.getFileVaultKey
      GET https://graph.microsoft.com/beta/users/u/managedDevices/d/getFileVaultKey
      GET https://graph.microsoft.com/beta/users('u')/managedDevices('d')/getFileVaultKey`),
  },
  gcp: {
    scopes: ['cloud-platform'],
    origin: 'https://iamcredentials.googleapis.com',
    ordinary: list(`
      GET https://storage.googleapis.com/storage/v1/b/bucket/o/a%2Fb
      POST https://storage.googleapis.com/upload/storage/v1/b/bucket/o
      POST https://bigquery.googleapis.com/bigquery/v2/projects/p/queries
      POST https://pubsub.googleapis.com/google.pubsub.v1.Publisher/Publish`),
    makes: list(`
      POST https://storage.googleapis.com/storage/v1/projects/p/hmacKeys
      POST https://storage.googleapis.com/
      POST https://storage.googleapis.com/batch/storage/v1
      POST https://compute.googleapis.com/batch/compute/v1
      POST https://sqladmin.googleapis.com/batch
      POST https://storage.googleapis.com/google.storage.v2.Storage/CreateHmacKey
      POST https://iam.googleapis.com/v1/projects/p/serviceAccounts/a/keys
      POST https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a:generateAccessToken
      POST https://sts.googleapis.com/v1/token
      POST https://secretmanager.googleapis.com/v1/projects/p/secrets
      GET https://secretmanager.googleapis.com/v1/projects/p/secrets/s/versions/1:access
      POST https://sqladmin.googleapis.com/v1/projects/p/instances/i:generateEphemeralCert
      POST https://sqladmin.googleapis.com/sql/v1beta4/projects/p/instances/i/users
      POST https://oauth2.googleapis.com/token`),
  },
}
