/** The import directions of ARCHITECTURE.md, kept by a tool. */
const ours = '^src/'
const allow = (name, from, to, extra = {}) => ({
  name,
  severity: 'error',
  from: { path: from, pathNot: '\\.test\\.ts$' },
  to: { path: ours, pathNot: to, ...extra },
})

export default {
  forbidden: [
    {
      name: 'no-circular',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'no-orphans',
      severity: 'error',
      from: { orphan: true, path: ours, pathNot: '\\.test\\.ts$' },
      to: {},
    },
    {
      name: 'not-to-test',
      severity: 'error',
      from: { path: ours, pathNot: '\\.test\\.ts$' },
      to: { path: '^(test|bench|scripts)/' },
    },
    {
      name: 'no-dev-dependency',
      severity: 'error',
      from: { path: ours, pathNot: '\\.(test\\.ts)$' },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
    allow('domain-imports-nothing', '^src/domain/', '^src/domain/'),
    {
      name: 'domain-is-pure',
      severity: 'error',
      from: { path: '^src/domain/', pathNot: '\\.test\\.ts$' },
      to: { dependencyTypes: ['npm', 'npm-dev', 'core'] },
    },
    allow('api-imports-nothing', '^src/api/', '^src/(api|domain)/'),
    allow('store-imports-domain', '^src/store/', '^src/(store|domain)/'),
    allow('keys-import-domain', '^src/keys/', '^src/(keys|domain)/'),
    allow(
      'a-kind-stays-at-home',
      '^src/backends/([^/]+)/',
      '^src/(domain/|backends/kind\\.ts$|backends/$1/)',
    ),
    allow('backends-import-domain', '^src/backends/[^/]+\\.ts$', '^src/(domain|backends)/'),
    allow('plugins-import-kind', '^src/plugins/', '^src/(plugins|domain)/|^src/backends/kind\\.ts$'),
    allow('core-imports-domain', '^src/core/', '^src/(core|domain)/|^src/backends/kind\\.ts$', {
      dependencyTypesNot: ['type-only'],
    }),
    allow('core-types', '^src/core/', '^src/(core|domain|store|keys|backends|(log|trace)\\.ts)'),
    allow('http-imports-core', '^src/http/', '^src/(http|core|domain|api)/|^src/log\\.ts$'),
    allow('jobs-import-core', '^src/jobs/', '^src/(jobs|core|domain)/|^src/log\\.ts$', {
      dependencyTypesNot: ['type-only'],
    }),
    allow('config-imports-domain', '^src/config/', '^src/(config|domain)/'),
    allow('client-imports-api', '^src/client/', '^src/(client|api)/'),
    allow('cli-imports-client', '^src/cli/', '^src/(cli|client|api|config|domain)/|^src/(app|log)\\.ts$'),
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
