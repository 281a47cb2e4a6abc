import { bySending, matchesGlob, type Right, type RightsOfKind, requestOf, right, textsOf } from './rights.ts'

/** A recipe of which one request says what the credential may do. */
const recipe = (
  type: string,
  rest: Omit<RightsOfKind, 'type' | 'open'>,
  [method, path]: readonly [string, RegExp],
  // biome-ignore lint/suspicious/noExplicitAny: the body of each upstream
  read: (body: any, pathname: string) => readonly Right[],
): RightsOfKind => ({
  type,
  ...rest,
  open: bySending((sent) => {
    const { body, url } = requestOf(sent, method, path)
    return read(body, decodeURIComponent(url.pathname))
  }),
})

const partOf = (pathname: string, after: string): string => {
  const [, found = ''] = new RegExp(`/${after}/(.+)/[^/]+$`).exec(pathname) ?? []
  return found
}

const artifactory = recipe(
  'artifactory',
  { config: { base_url: 'https://acme.jfrog.io', token: 'change-me' }, names: {} },
  ['POST', /\/tokens$/],
  ({ scope }) => textsOf(scope).map((one) => right(one.replace('applied-permissions/groups:', 'group:'))),
)

/** The permission groups of Cloudflare. */
const GROUPS: Readonly<Record<string, string>> = {
  '82e64a83756745bbbb1c9c2701bf816b': 'dns_read',
  '4755a26eedb94da69e1066d98aa820be': 'dns_write',
  c8fed203ed3043cba015a93ad1616f1f: 'zone_read',
  e17beae8b8cb423a99b1730f21238bed: 'cache_purge',
}
interface CloudflarePolicy {
  readonly resources: Readonly<Record<string, string>>
  readonly permission_groups: readonly { readonly id: string }[]
}

const cloudflare = recipe(
  'cloudflare',
  { config: { token: 'change-me', account_id: '023e105f4ecef8ad9ca31a8372d0c353' }, names: {} },
  ['POST', /\/tokens$/],
  ({ policies }) =>
    policies.flatMap(({ resources, permission_groups: groups }: CloudflarePolicy) =>
      Object.keys(resources).flatMap((resource) =>
        groups.map(({ id }) =>
          right(`${resource.replace('com.cloudflare.api.account.zone.', '')}:${GROUPS[id]}`),
        ),
      ),
    ),
)

const dockerhub = recipe(
  'dockerhub',
  { config: { username: 'acmebot', password: 'change-me' }, names: {} },
  ['POST', /access-tokens$/],
  ({ scopes }) => scopes.map((scope: string) => right(scope)),
)

const doppler = recipe(
  'doppler',
  {
    config: { token: 'change-me', configs: ['a/prd', 'a/dev', 'ab/prd'] },
    names: { project: ['a', 'ab', 'b'], config: ['prd', 'dev'] },
  },
  ['POST', /tokens$/],
  ({ project, config, access }) => {
    const place = `${project}/${config}`
    const reading = right(`${place}:read`, `${place}:write`)
    return access === 'read' ? [reading] : [reading, right(`${place}:write`)]
  },
)

const INDEXES = ['a', 'ab', 'abc', 'b', 'zz', '.security']
/** The scopes of which each gives a privilege. */
const PRIVILEGES: Readonly<Record<string, readonly string[]>> = {
  read: ['read', 'write'],
  view_index_metadata: ['read', 'write'],
  write: ['write'],
  create_doc: ['ingest'],
  auto_configure: ['ingest'],
}
interface IndexPrivileges {
  readonly names: readonly string[]
  readonly privileges: readonly string[]
}

const elasticsearch = recipe(
  'elasticsearch',
  {
    config: { base_url: 'https://es.example.com:9200', username: 'mayfly', password: 'change-me' },
    names: {},
    forms: ['a*:read', 'ab*:write', 'a*:ingest', '<index>*:read'],
  },
  ['POST', /api_key$/],
  ({ role_descriptors: { mayfly, ...others } }) => {
    const { cluster, indices } = mayfly
    const extra = [...Object.keys(others), ...cluster].map((name) => right(`?${name}`))
    const inside = indices.flatMap(({ names, privileges }: IndexPrivileges) =>
      INDEXES.filter((index) => names.some((name) => matchesGlob(name, index))).flatMap((index) =>
        privileges.map((privilege) => ({
          name: `${privilege} ${index}`,
          by: (PRIVILEGES[privilege] ?? []).map((access) => `${index}:${access}`),
        })),
      ),
    )
    return [...extra, ...inside]
  },
)

const gitea = recipe(
  'gitea',
  { config: { base_url: 'https://git.example.com', username: 'mayfly', password: 'change-me' }, names: {} },
  ['POST', /\/tokens$/],
  ({ scopes }) =>
    scopes.map((scope: string) => {
      const [access, area] = scope.split(':')
      return right(`${area}:${access}`)
    }),
)

const gitlab = recipe(
  'gitlab',
  {
    config: { token: 'change-me', projects: ['acme/app', 'acme/app-web', 'acme/lib/x'] },
    names: { project: ['acme/app', 'acme/app-web', 'acme/lib/x', 'evil'] },
  },
  ['POST', /access_tokens$/],
  ({ scopes }, pathname) =>
    scopes.map((scope: string) => {
      const of = (permission: string) => `${partOf(pathname, 'projects')}:${permission}`
      // "You need both read and write access to push images."
      return scope === 'read_registry' ? right(of(scope), of('write_registry')) : right(of(scope))
    }),
)

const grafana = recipe(
  'grafana',
  { config: { base_url: 'https://grafana.example.com', token: 'change-me' }, names: {} },
  ['POST', /serviceaccounts$/],
  ({ role }) => [right(role.toLowerCase())],
)

const openai = recipe(
  'openai',
  {
    config: { admin_key: 'change-me', projects: ['proj_a', 'proj_ab'] },
    names: { project: ['proj_a', 'proj_ab', 'proj_b'] },
  },
  ['POST', /service_accounts$/],
  (_, pathname) => [right(partOf(pathname, 'projects'))],
)

const sonarqube = recipe(
  'sonarqube',
  { config: { base_url: 'https://sonarqube.example.com', token: 'change-me' }, names: {} },
  ['POST', /generate$/],
  ({ projectKey, type }) => [
    type === 'PROJECT_ANALYSIS_TOKEN' ? right(`${projectKey}:analyze`) : right(`?${type}`),
  ],
)

const tailscale = recipe(
  'tailscale',
  { config: { client_id: 'kABCDEF12CNTRL', client_secret: 'change-me' }, names: {} },
  ['POST', /\/keys$/],
  ({ capabilities }) =>
    capabilities.devices.create.tags.map((tag: string) => right(tag.replace(/^tag:/, ''))),
)

const terraformCloud = recipe(
  'terraform-cloud',
  { config: { token: 'change-me', organization: 'acme' }, names: { team: ['team-a', 'team-ab', 'team-b'] } },
  ['POST', /authentication-tokens$/],
  (_, pathname) => [right(partOf(pathname, 'teams'))],
)

export const recipes: readonly RightsOfKind[] = [
  artifactory,
  cloudflare,
  dockerhub,
  doppler,
  elasticsearch,
  gitea,
  gitlab,
  grafana,
  openai,
  sonarqube,
  tailscale,
  terraformCloud,
]
