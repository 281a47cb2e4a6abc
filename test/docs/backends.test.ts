import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { kinds } from '../../src/backends/index.ts'
import { readKindVariables } from '../../src/cli/project-file/kind-variables.ts'
import { type PageWorld, startPageWorld } from './backend-page.ts'
import { mqtt, nats } from './upstreams/brokers.ts'
import { jwt, mysql, postgres, redis } from './upstreams/databases.ts'
import { ldap } from './upstreams/directory.ts'
import { ssh, x509 } from './upstreams/servers.ts'
import { oauth2, oauth2Revocable, registry } from './upstreams/tokens.ts'

/** Of kinds whose upstream runs here. */
const upstreams = {
  ...{ postgres, mysql, redis, jwt, mqtt, nats, ldap, ssh, x509, oauth2, registry },
  'oauth2-revocable': oauth2Revocable,
}
/** Of kinds whose upstream takes long to start: the file that has started it runs the page, too. */
const ELSEWHERE = ['aws', 'rabbitmq']
/** Services and products that no test machine has; tests use what stands for them in test/support/fakes. */
const FAKED =
  'anthropic artifactory azure cloudflare dockerhub doppler elasticsearch gcp gitea github gitlab grafana kubernetes ' +
  'openai sonarqube tailscale terraform-cloud vault vault-secret'

const FOLDER = fileURLToPath(new URL('../../docs/backends/', import.meta.url))
const HEADINGS = [
  'Set up',
  'Scopes',
  'Lifetimes and what ending does',
  'Environment variables',
  'Through the proxy',
  'At scale',
  'Troubleshooting',
]

const isDocumented = (type: string) => existsSync(`${FOLDER}${type}.md`)
const read = (type: string) => readFileSync(`${FOLDER}${type}.md`, 'utf8')
/** Without code blocks, where a hash means something else. */
const prose = (text: string) => text.replace(/^( *)(`{3,})[\s\S]*?^\1\2\s*$/gm, '')
const headings = (text: string, level: string) =>
  [...prose(text).matchAll(new RegExp(`^${level} (.+)$`, 'gm'))].map(([, title]) => title)
const sectionOf = (text: string, title: string) =>
  text.split(/^## /m).find((part) => part.startsWith(`${title}\n`)) ?? ''

/** Whole, or for a kind with many of them by its parts: `repository` where there is `<area>:read`. */
function isNamed(section: string, form: string): boolean {
  const [name, right, ...rest] = form.split(':')
  const byParts = section.includes(`\`${name}\``) && section.includes(`>:${right}\``)
  return section.includes(`\`${form}\``) || (rest.length === 0 && byParts)
}

test('a test runs the page of each kind whose upstream runs here', () => {
  const all = [...Object.keys(upstreams), ...ELSEWHERE, ...FAKED.split(' ')]
  expect(all.sort()).toEqual(kinds.map(({ type }) => type).sort())
  for (const type of ELSEWHERE) {
    const file = readFileSync(new URL(`../real/${type}.test.ts`, import.meta.url), 'utf8')
    expect(file).toContain(`runPage('${type}'`)
  }
})

test('each kind has a page, and each page a kind', () => {
  const pages = readdirSync(FOLDER).map((name) => name.replace(/\.md$/, ''))
  expect(pages.sort()).toEqual(kinds.map(({ type }) => type).sort())
})

describe.each(kinds.filter(({ type }) => isDocumented(type)))('the page of $type', (kind) => {
  const text = read(kind.type)

  test('has exactly the headings of every such page', () => {
    expect([headings(text, '#').length, headings(text, '##')]).toEqual([1, HEADINGS])
  })

  test('shows how to add a backend', () => {
    expect(sectionOf(text, 'Set up')).toContain(`mayfly backend add ${kind.type} `)
  })

  test('names each form of a scope', () => {
    const section = sectionOf(text, 'Scopes')
    expect(kind.scopes.forms.filter(({ form }) => !isNamed(section, form))).toEqual([])
  })

  test('names each variable, and the command sets them all', () => {
    const section = sectionOf(text, 'Environment variables')
    const names = Object.keys(kind.environment ?? {})
    expect(names.filter((name) => !section.includes(`\`${name}\``))).toEqual([])
    expect(readKindVariables(kind.environment).unknown).toEqual([])
  })
})

describe('the commands of a page work:', () => {
  let world: PageWorld
  beforeAll(async () => {
    world = await startPageWorld()
  })
  afterAll(() => world.close())

  test.each(Object.entries(upstreams))('%s', (type, start) => world.runPage(type, start))
})
