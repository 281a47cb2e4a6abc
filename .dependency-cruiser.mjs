/** The import directions of ARCHITECTURE.md §3. Type-only imports count like any other; no rule exempts them. */
const ours = '^src/'
const notTests = '\\.test\\.ts$'

/** Files under `from` may import, of our own code, only what matches `to`. */
const allow = (name, from, to) => ({
  name,
  severity: 'error',
  from: { path: from, pathNot: notTests },
  to: { path: ours, pathNot: to },
})

/**
 * The rooms of one folder: each lists the neighbours that it may import, besides itself and the files that stand
 * directly in the folder. The folder's own files import no room, except those in `open`.
 */
const rooms = (folder, neighbours, open = []) => [
  ...Object.entries(neighbours).map(([room, others]) => ({
    name: `${folder}/${room}`,
    severity: 'error',
    from: { path: `^src/${folder}/${room}/`, pathNot: notTests },
    to: {
      path: `^src/${folder}/[^/]+/`,
      pathNot: `^src/${folder}/(${[room, ...others].join('|')})/`,
    },
  })),
  {
    name: `${folder}-base`,
    severity: 'error',
    from: { path: `^src/${folder}/[^/]+\\.ts$`, pathNot: [notTests, ...open] },
    to: { path: `^src/${folder}/[^/]+/` },
  },
]

export default {
  forbidden: [
    { name: 'no-circular', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-orphans',
      severity: 'error',
      from: { orphan: true, path: ours, pathNot: notTests },
      to: {},
    },
    {
      name: 'not-to-test',
      severity: 'error',
      from: { path: ours, pathNot: notTests },
      to: { path: '^(test|bench|scripts)/' },
    },
    {
      name: 'no-dev-dependency',
      severity: 'error',
      from: { path: ours, pathNot: notTests },
      to: { dependencyTypes: ['npm-dev'], pathNot: 'node_modules/@types/' },
    },
    allow('domain-imports-nothing', '^src/domain/', '^src/domain/'),
    {
      name: 'domain-is-pure',
      severity: 'error',
      from: { path: '^src/domain/', pathNot: notTests },
      to: { dependencyTypes: ['npm', 'npm-dev', 'core'] },
    },
    allow('api-imports-domain', '^src/api/', '^src/(api|domain)/'),
    allow('log-imports-domain', '^src/log/', '^src/(log|domain)/'),
    allow('files-import-domain', '^src/files/', '^src/(files|domain)/'),
    allow('config-imports-domain', '^src/config/', '^src/(config|domain|files)/'),
    allow('keys-import-domain', '^src/keys/', '^src/(keys|domain)/'),
    allow('store-imports-domain', '^src/store/', '^src/(store|domain)/|^src/installation\\.ts$'),
    allow('egress-imports-domain', '^src/egress/', '^src/(egress|domain)/'),
    allow(
      'a-kind-stays-at-home',
      '^src/backends/([^/]+)/',
      '^src/(domain/|egress/network\\.ts$|backends/(account-name|assertion|define-kind|fields|issued|json-api|kind|named-scopes|server-fields|uses)\\.ts$|backends/$1/)',
    ),
    allow('backends-import-domain', '^src/backends/[^/]+\\.ts$', '^src/(domain|egress|backends)/'),
    allow(
      'plugins-import-the-kind',
      '^src/plugins/',
      '^src/(plugins|domain)/|^src/(backends/kind|installation)\\.ts$',
    ),
    allow(
      'the-plugin-side-stays-small',
      '^src/plugin-sdk/',
      '^src/(plugin-sdk|domain|egress)/|^src/backends/(define-kind|kind)\\.ts$|^src/plugins/((process/(certificate|grpc-frame)|schema|scope-forms)\\.ts$|proto/)',
    ),
    allow(
      'core-imports-its-parts',
      '^src/core/',
      '^src/(core|domain|keys|store|log)/|^src/backends/(kind|kind-set|open-backends|config-fields)\\.ts$',
    ),
    allow('receivers-stay-outside', '^src/notify/', '^src/(notify|domain|egress)/'),
    allow('providers-stay-outside', '^src/sso/', '^src/(sso|domain|egress)/'),
    allow('trust-stays-outside', '^src/identity/', '^src/(identity|domain|egress|keys)/'),
    allow('http-imports-core', '^src/http/', '^src/(http|core|domain|api|log)/'),
    allow(
      'jobs-import-core',
      '^src/jobs/',
      '^src/(jobs|core|domain|log)/|^src/backends/open-backends.ts$|^src/store/(tables/sealed|schema/rows).ts$',
    ),
    {
      name: 'the-console-imports-the-client',
      severity: 'error',
      from: { path: '^web/', pathNot: notTests },
      to: { path: '^(src|test|bench|scripts)/', pathNot: '^src/(client|api)/' },
    },
    {
      // What the interface is, the console knows as types: the schemas are a validator's, and large.
      name: 'the-console-takes-types-of-the-interface',
      severity: 'error',
      from: { path: '^web/' },
      to: { path: '^src/api/', dependencyTypesNot: ['type-only'] },
    },
    allow('client-imports-api', '^src/client/', '^src/(client|api)/|^src/domain/abort\\.ts$'),
    // An agent's machine runs these.
    allow(
      'cli-imports-client',
      '^src/cli/(?!verbs/)',
      '^src/(cli|client|api|files|domain)/|^src/(log/log|installation|proxy/start-proxy|proxy/types)\\.ts$',
    ),
    // It runs beside an agent: no server code, and no use cases of its own.
    allow('the-proxy-imports-client', '^src/proxy/', '^src/(proxy|client|api|domain|egress)/'),
    ...rooms(
      'proxy',
      {
        authority: [],
        databases: ['held'],
        held: [],
        mask: [],
        record: [],
        rules: [],
        sign: ['rules'],
        traffic: ['authority', 'mask', 'rules', 'sign'],
        ways: ['authority', 'rules'],
      },
      ['^src/proxy/start-proxy\\.ts$'],
    ),
    allow('integrations-import-client', '^integrations/', '^src/(client|cli|domain)/'),
    allow('the-table-names-operations', '^src/cli/verbs/', '^src/(cli|operations)/'),
    allow(
      'operations-import-app',
      '^src/operations/',
      '^src/(operations|cli|client|api|files|config|domain)/|^src/(app/app|app/backup|app/recipes|app/rights|app/plugins/(artefacts|package-entry|tarball)|log/log|backends/index|backends/config-fields|installation)\\.ts$',
    ),
    ...rooms(
      'core',
      {
        audit: [],
        authentication: ['audit'],
        agents: ['audit', 'authentication'],
        backends: ['audit'],
        credentials: ['audit', 'authentication', 'backends', 'runs'],
        notifications: ['audit'],
        enrollments: ['audit', 'agents'],
        identities: ['audit', 'authentication', 'agents', 'runs', 'enrollments'],
        oauth: ['audit', 'credentials', 'identities', 'runs'],
        runs: ['audit'],
        server: ['audit'],
        sessions: ['audit', 'authentication'],
        'command-logins': ['audit', 'sessions'],
        operators: ['audit', 'authentication', 'agents', 'sessions'],
        live: ['audit', 'authentication', 'runs', 'sessions'],
      },
      ['^src/core/create-core\\.ts$'],
    ),
    ...rooms(
      'store',
      {
        schema: [],
        engine: ['schema'],
        sqlite: ['engine', 'schema'],
        postgres: ['engine', 'schema'],
        tables: ['engine', 'schema'],
      },
      ['^src/store/(open|move)\\.ts$'],
    ),
    ...rooms('http', {
      console: [],
      server: [],
      routing: ['server'],
      routes: ['console', 'routing', 'server'],
    }),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'types', 'default'],
    },
  },
}
