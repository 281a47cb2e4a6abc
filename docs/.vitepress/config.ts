import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { defineConfig, type MarkdownRenderer } from 'vitepress'

/** The site is made from the same files that the repository shows: pages keep their paths, and so do links. */
const ROOT = join(import.meta.dirname, '../..')

const titleOf = (path: string) => /^# (.+)$/m.exec(readFileSync(join(ROOT, path), 'utf8'))?.[1] ?? path
const page = (path: string) => ({ text: titleOf(path), link: `/${path.replace(/\.md$/, '')}` })
const pages = (folder: string, ...names: string[]) => names.map((name) => page(`docs/${folder}/${name}.md`))
const all = (folder: string) =>
  readdirSync(join(ROOT, 'docs', folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => page(`docs/${folder}/${name}`))

const START = pages(
  'start',
  'first-steps',
  'first-postgresql-credential',
  'from-the-package',
  'when-something-goes-wrong',
)
const GUIDES = pages(
  'guides',
  'ai-agents',
  'proxy',
  'proxy-service',
  'proxy-in-kubernetes',
  'proxy-in-ci',
  'ci',
  'git',
  'aws',
  'kubernetes',
  'hosted-agents',
  'http',
  'write-a-recipe',
  'plugins',
  'write-a-plugin',
  'console',
  'enrollment-policies',
  'administrators',
  'people',
  'add-a-scope',
  'leaked-token',
  'who-had-what',
  'end-an-agent',
)
const OPERATIONS = pages(
  'operations',
  'install',
  'tls',
  'several-nodes',
  'backup',
  'postgresql',
  'certificate',
  'master-key',
  'upgrade',
  'monitoring',
  'notifications',
  'troubleshooting',
  'remove',
)
const REFERENCE = [
  ...pages('reference', 'cli', 'config', 'project-file', 'http', 'errors', 'audit', 'client'),
]
const BACKENDS = all('backends').sort((one, other) => one.text.localeCompare(other.text))
const EXPLANATION = [
  ...pages(
    'explanation',
    'overview',
    'how-an-end-is-seen',
    'proxy',
    'performance',
    'console-design',
    'threat-model',
    'decisions',
  ),
  page('SECURITY.md'),
  page('ARCHITECTURE.md'),
  page('CONTRIBUTING.md'),
  page('CHANGELOG.md'),
  { text: 'Decision records', collapsed: true, items: all('explanation/adr') },
]

function adaptMarkdown(md: MarkdownRenderer): void {
  // Text such as <name> is meant as it stands.
  md.disable('html_inline')
  md.core.ruler.push('adapt-links', (state) => {
    for (const { children } of state.tokens) {
      let isPlain = false
      for (const token of children ?? []) {
        if (token.type === 'link_open') {
          const href = token.attrGet('href') ?? ''
          const file = join(dirname(state.env.path), decodeURI(href).split('#')[0] ?? '')
          if (file === join(ROOT, 'README.md')) token.attrSet('href', '/')
          isPlain = leadsToFile(href, file)
        }
        if (isPlain && (token.type === 'link_open' || token.type === 'link_close')) {
          token.type = 'text'
          token.content = ''
        }
      }
    }
  })
}

/** Sources, licences and folders are not on the site: links to them become text. */
function leadsToFile(href: string, file: string): boolean {
  if (/^(\w+:|#)/.test(href) || /\.(md|html|json)(#|$)/.test(href)) return false
  return existsSync(file)
}

export default defineConfig({
  title: 'Mayfly',
  description: 'Short-lived credentials for AI agents, CI jobs and scripts',
  srcDir: ROOT,
  srcExclude: ['bench/**', 'dist/**', 'dist-docs/**', 'coverage/**', '.mayfly/**'],
  outDir: join(ROOT, 'dist-docs'),
  cacheDir: join(ROOT, 'node_modules/.cache/vitepress'),
  rewrites: { 'README.md': 'index.md' },
  ignoreDeadLinks: false,
  // Braces in the text are no attributes.
  markdown: { attrs: { disable: true }, config: adaptMarkdown },
  themeConfig: {
    search: { provider: 'local' },
    outline: 'deep',
    nav: [
      { text: 'Overview', link: '/docs/' },
      { text: 'Start', link: START[0]?.link ?? '/' },
      { text: 'Guides', link: GUIDES[0]?.link ?? '/' },
      { text: 'Operations', link: OPERATIONS[0]?.link ?? '/' },
      { text: 'Reference', link: REFERENCE[0]?.link ?? '/' },
      { text: 'Backends', link: '/docs/backends/postgres' },
      { text: 'Explanation', link: EXPLANATION[0] === undefined ? '/' : '/docs/explanation/overview' },
    ],
    sidebar: [
      { text: 'Start', items: START },
      { text: 'Guides', items: GUIDES },
      { text: 'Operations', items: OPERATIONS },
      { text: 'Reference', items: REFERENCE },
      { text: 'Backends', items: BACKENDS },
      { text: 'Explanation', items: EXPLANATION },
    ],
  },
  buildEnd: ({ outDir }) => {
    for (const name of ['openapi.json', 'config.schema.json'])
      cpSync(join(ROOT, 'docs/reference', name), join(outDir, 'docs/reference', name))
  },
})
