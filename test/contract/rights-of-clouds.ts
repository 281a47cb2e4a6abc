import { readNamed } from '../../src/backends/named-scopes.ts'
import { bySending, matchesGlob, type Right, type RightsOfKind, requestOf, right, textsOf } from './rights.ts'

const anthropic: RightsOfKind = {
  type: 'anthropic',
  config: {
    organization_id: '00000000-0000-0000-0000-000000000000',
    federation_rule_id: 'fdrl_01abc',
    service_account_id: 'svac_01abc',
    workspaces: ['default', 'wrkspc_a', 'wrkspc_ab'],
  },
  names: { workspace: ['wrkspc_a', 'wrkspc_ab', 'wrkspc_b'] },
  forms: ['wrkspc_ab*', 'def*'],
  // A token is for one workspace, and there are three.
  refused: ['*'],
  open: bySending((sent) => [right(requestOf(sent, 'POST', /oauth\/token$/).body.workspace_id)]),
}

const BUCKETS = ['logs', 'logs-eu', 'other']
const KEYS = ['a', 'ab', 'a/b', 'b', 'zz']

interface Statement {
  readonly Effect: 'Allow' | 'Deny'
  readonly Action: string | readonly string[]
  readonly Resource: string
  readonly Condition?: { readonly StringLike?: Readonly<Record<string, string>> }
}

/** IAM JSON policy elements: what the statements allow of some buckets and keys. */
function rightsOfPolicy(text: string | undefined): Right[] {
  // Without a session policy, all that the role may do.
  if (text === undefined) return [right('*')]
  const statements: readonly Statement[] = JSON.parse(text).Statement
  return statements.flatMap(({ Effect, Action, Resource, Condition }) => {
    if (Effect === 'Deny') return []
    const prefix = Condition?.['StringLike']?.['s3:prefix']
    if (Condition !== undefined && prefix === undefined) throw new Error('an unknown condition')
    return [Action].flat().flatMap((action) => rightsOfAction(action, Resource, prefix))
  })
}

function rightsOfAction(action: string, resource: string, prefix: string | undefined): Right[] {
  const own = /^mine:(.+)$/.exec(action)?.[1]
  if (own !== undefined) return [right(`policy/${own}`)]
  const whole = (bucket: string) => [`s3/${bucket}:read`, `s3/${bucket}:write`]
  if (action === 's3:ListBucket') {
    return BUCKETS.filter((bucket) => matchesGlob(resource, `arn:aws:s3:::${bucket}`)).flatMap((bucket) =>
      ['', ...KEYS]
        .filter((asked) => prefix === undefined || matchesGlob(prefix, asked))
        .map((asked) => {
          const below = asked === '' ? [] : ['read', 'write'].map((one) => `s3/${bucket}/${asked}:${one}`)
          return { name: `list ${bucket} from "${asked}"`, by: [...below, ...whole(bucket)] }
        }),
    )
  }
  const reads = action === 's3:GetObject'
  const known = reads || /^s3:(PutObject|DeleteObject|AbortMultipartUpload)$/.test(action)
  if (!known) throw new Error(`an unknown action: ${action}`)
  return BUCKETS.flatMap((bucket) => KEYS.map((key) => ({ bucket, key })))
    .filter(({ bucket, key }) => matchesGlob(resource, `arn:aws:s3:::${bucket}/${key}`))
    .map(({ bucket, key }) => {
      const writing = [`s3/${bucket}/${key}:write`, `s3/${bucket}:write`]
      const by = reads ? [...writing, `s3/${bucket}/${key}:read`, `s3/${bucket}:read`] : writing
      return { name: `${action} ${bucket}/${key}`, by }
    })
}

const ownPolicy = (name: string) => ({
  name,
  policy: JSON.stringify({ Statement: [{ Effect: 'Allow', Action: `mine:${name}`, Resource: '*' }] }),
})

const aws: RightsOfKind = {
  type: 'aws',
  config: {
    role_arn: 'arn:aws:iam::123456789012:role/reports',
    policies: [ownPolicy('queue'), ownPolicy('queue2')],
  },
  names: { bucket: BUCKETS, prefix: KEYS, name: ['queue', 'queue2', 'evil'] },
  forms: ['s3/<bucket>/<prefix>*:write', 's3/<bucket>/<prefix>:read', 's3/<bucket>/<prefix>:write'],
  open: bySending((sent) => rightsOfPolicy(requestOf(sent, 'POST', /./).body.Policy)),
}

const azure: RightsOfKind = {
  type: 'azure',
  config: {
    tenant_id: '11111111-2222-3333-4444-555555555555',
    client_id: '66666666-7777-8888-9999-000000000000',
    client_secret: 'change-me',
    resources: ['management.azure.com', 'vault.azure.net', 'api/a', 'api/ab'],
  },
  names: { application: ['a', 'ab', 'b'] },
  forms: ['vault.azure.net', 'v*', 'api/ab*'],
  // A token is for one resource, and there are four.
  refused: ['*'],
  open: bySending((sent) => {
    const { scope } = requestOf(sent, 'POST', /token$/).body
    const [, scheme, name] = /^(https|api):\/\/([^ ]+)\/\.default$/.exec(scope) ?? []
    return [right(scheme === 'api' ? `api/${name}` : String(name))]
  }),
}

const gcp: RightsOfKind = {
  type: 'gcp',
  config: {
    service_account: 'reports@my-project.iam.gserviceaccount.com',
    provider: 'projects/1/locations/global/workloadIdentityPools/mayfly/providers/mayfly',
    oauth_scopes: ['devstorage.read_only', 'logging.read'],
  },
  names: {},
  forms: ['logging.read', 'devstorage.full_control'],
  refused: ['cloud-platform', 'devstorage.full_control'],
  open: bySending((sent) =>
    requestOf(sent, 'POST', /:generateAccessToken$/).body.scope.map((url: string) =>
      right(url.replace('https://www.googleapis.com/auth/', '')),
    ),
  ),
}

const NAMED = ['orders:read', 'orders:write=orders.rw base', 'users=u', 'team/a']
const namedForms = ['orders:*', 'orders', 'orders:write', 'o*', 'team/*']
const named = ['orders:read', 'users', 'team/a', 'evil']

/** What the upstream calls something, and the configured names that stand for it. */
const rightNamed = (theirs: string): Right => {
  const by = readNamed(NAMED).filter(([, text]) => text.split(' ').includes(theirs))
  return { name: theirs, by: by.map(([name]) => name) }
}

const SERVER = {
  token_endpoint: 'https://login.example.com/oauth2/token',
  client_id: 'mayfly',
  client_secret: 'change-me',
}
const REVOCABLE = { ...SERVER, revocation_endpoint: 'https://login.example.com/oauth2/revoke' }

const scopesSent = bySending((sent) =>
  textsOf(requestOf(sent, 'POST', /oauth2\/token$/).body.scope).map(rightNamed),
)
const oauth2: RightsOfKind = {
  type: 'oauth2',
  config: { ...SERVER, scopes: NAMED },
  names: { scope: named },
  forms: namedForms,
  open: scopesSent,
}
const oauth2Revocable: RightsOfKind = {
  ...oauth2,
  type: 'oauth2-revocable',
  config: { ...REVOCABLE, scopes: NAMED },
}
const oauth2ByName: RightsOfKind = {
  ...oauth2,
  variant: 'without configured scopes',
  config: SERVER,
  // The server knows no wildcards.
  refused: ['*', 'orders:*', 'o*', 'team/*'],
  open: bySending((sent) =>
    textsOf(requestOf(sent, 'POST', /oauth2\/token$/).body.scope).map((scope) => right(scope)),
  ),
}

const VAULT = { address: 'https://vault.example.com:8200', auth: 'token', token: 'change-me' }
const LOGIN = { auth: { client_token: 'token', accessor: 'accessor', lease_duration: 600, policies: [] } }

const vault: RightsOfKind = {
  type: 'vault',
  config: { ...VAULT, policies: ['orders:read=orders-read', ...NAMED.slice(1)] },
  names: { policy: named },
  forms: namedForms,
  open: bySending(
    (sent) => {
      const { policies, no_default_policy: without } = requestOf(sent, 'POST', /token\/create\/mf_/).body
      if (without !== true) throw new Error('the token has the default policy')
      return policies.map((policy: string) =>
        policy === 'orders-read' ? right('orders:read') : rightNamed(policy),
      )
    },
    { reply: LOGIN },
  ),
}

const vaultSecret: RightsOfKind = {
  type: 'vault-secret',
  config: { ...VAULT, secrets: ['orders:read=database/creds/orders', 'users=pki/u', 'users2'] },
  names: { secret: [...named, 'users2'] },
  forms: namedForms,
  refused: ['orders:write', 'team/*'],
  open: bySending(
    (sent) => {
      const path = requestOf(sent, 'GET', /./).url.pathname.replace('/v1/', '')
      const by = { 'database/creds/orders': 'orders:read', 'pki/u': 'users' }[path] ?? path
      return [right(by)]
    },
    { reply: LOGIN },
  ),
}

export const clouds: readonly RightsOfKind[] = [
  anthropic,
  aws,
  azure,
  gcp,
  oauth2,
  oauth2ByName,
  oauth2Revocable,
  vault,
  vaultSecret,
]
