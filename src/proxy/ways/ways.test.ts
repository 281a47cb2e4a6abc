import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { HttpUse } from '../../domain/use.ts'
import { createAuthority } from '../authority/authority.ts'
import type { Held, Site } from '../types.ts'
import { writeBundle } from './bundle.ts'
import { forwardVariables, ROOT_FILES } from './forward-variables.ts'
import { siteVariables } from './variables.ts'

function siteFor(
  type: string,
  given: Partial<HttpUse> & { origin: string },
  token = `${type}-placeholder`,
): Site {
  const held = { name: 'orders', backend: 'orders', type, uses: [], placeholders: new Map([['', token]]) }
  const use: HttpUse = {
    ...{ protocol: 'http', name: 'api', local: false, deny: [] },
    ...{ places: [{ in: 'header', name: 'authorization' }], allow: [{ methods: ['*'], path: '/**' }] },
    ...given,
  }
  return { held: held as unknown as Held, use, url: 'http://127.0.0.1:4100' }
}

describe('the variables of sites', () => {
  const openai = siteFor('openai', {
    origin: 'https://api.openai.com',
    allow: [{ methods: ['POST'], path: '/v1/**' }],
  })
  const env = { OPENAI_API_KEY: 'openai-placeholder' }

  it('lead a program to the site of its upstream', () => {
    expect(siteVariables([openai], env).env).toEqual({
      MAYFLY_URL_ORDERS_API: 'http://127.0.0.1:4100',
      OPENAI_BASE_URL: 'http://127.0.0.1:4100/v1',
      OPENAI_API_BASE: 'http://127.0.0.1:4100/v1',
    })
  })

  it('know an upstream by its host, whatever its kind is called', () => {
    const own = siteFor('acme', { origin: 'https://api.anthropic.com' })
    expect(siteVariables([own], { ANTHROPIC_API_KEY: 'acme-placeholder' }).env).toMatchObject({
      ANTHROPIC_BASE_URL: 'http://127.0.0.1:4100',
    })
  })

  it('keep the path below which an upstream is mounted', () => {
    const gitea = siteFor('gitea', {
      origin: 'https://git.example.com',
      allow: [{ methods: ['GET'], path: '/gitea/api/v1/repos/**' }],
    })
    expect(siteVariables([gitea], {}).env).toMatchObject({ GITEA_SERVER_URL: 'http://127.0.0.1:4100/gitea' })
  })

  it('never lead a secret of the user elsewhere', () => {
    for (const own of [{ OPENAI_API_KEY: 'sk-own' }, { ...env, OPENAI_ADMIN_KEY: 'sk-own' }]) {
      const { env: made, notes } = siteVariables([openai], own)
      expect(made).not.toHaveProperty('OPENAI_BASE_URL')
      expect(notes.join()).toMatch(/holds a secret of its own/)
      expect(notes.join()).not.toContain('sk-own')
    }
  })

  it('ask for a placeholder where the program may have a login on disk', () => {
    const vault = siteFor('vault', { origin: 'https://vault.example.com' })
    expect(siteVariables([vault], {}).env).not.toHaveProperty('VAULT_ADDR')
    expect(siteVariables([vault], { VAULT_TOKEN: 'vault-placeholder' }).env).toHaveProperty('VAULT_ADDR')
  })

  it('lead a program to the first of two', () => {
    const { notes } = siteVariables([openai, openai], env)
    expect(notes).toEqual(['mayfly: orders: OPENAI_BASE_URL is already set for orders.'])
  })

  it('give npm a login for the site and for the upstream, in a file', () => {
    const npm = siteFor('acme', {
      name: 'npm',
      origin: 'https://npm.example.com',
      allow: [{ methods: ['GET'], path: '/team/**' }],
    })
    const { env: made, files } = siteVariables([npm], {})
    expect(made).toMatchObject({ npm_config_registry: 'http://127.0.0.1:4100/team/' })
    expect(files).toEqual([
      {
        ...{ variable: 'npm_config_globalconfig', name: 'npmrc' },
        text: ['127.0.0.1:4100/', '127.0.0.1:4100/team/', 'npm.example.com/', 'npm.example.com/team/']
          .map((place) => `//${place}:_authToken=acme-placeholder\n`)
          .join(''),
      },
    ])
  })

  it.each([
    ['https://pypi.example.com', 'https://__token__:acme-placeholder@pypi.example.com/simple'],
    ['https://localhost:8443', 'http://__token__:acme-placeholder@127.0.0.1:4100/simple'],
    ['http://10.1.2.3', 'http://__token__:acme-placeholder@127.0.0.1:4100/simple'],
  ])('give pip the index %s as one that its proxy leads to', (origin, index) => {
    const allow = [{ methods: ['GET'], path: '/simple/**' }]
    const python = siteFor('acme', { name: 'pypi', origin, allow })
    expect(siteVariables([python], {}).env).toMatchObject({ PIP_INDEX_URL: index, UV_DEFAULT_INDEX: index })
  })
})

describe('the settings of git', () => {
  const site = siteFor('github', { name: 'git', origin: 'https://github.com', places: [{ in: 'basic' }] })

  it('are understood by git, beside those that are there', () => {
    const before = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'user.name', GIT_CONFIG_VALUE_0: 'Ada' }
    const { env } = siteVariables([site], before)
    const git = (...args: string[]) =>
      execFileSync('git', args, {
        env: { PATH: process.env['PATH'], ...before, ...env },
        encoding: 'utf8',
      }).trim()
    expect(git('config', 'user.name')).toBe('Ada')
    for (const address of [
      'https://github.com/acme/web.git',
      'git@github.com:acme/web.git',
      'ssh://git@github.com/acme/web.git',
    ])
      expect(git('ls-remote', '--get-url', address)).toBe('http://127.0.0.1:4100/acme/web.git')
    expect(git('ls-remote', '--get-url', 'https://github.com.evil.example/x')).toBe(
      'https://github.com.evil.example/x',
    )
    const header = git('config', '--get-urlmatch', 'http.extraHeader', 'http://127.0.0.1:4100/acme/web.git')
    const login = Buffer.from('x-access-token:github-placeholder').toString('base64')
    expect(header).toBe(`Authorization: Basic ${login}`)
    expect(git('config', '--get-urlmatch', 'http.proxy', 'http://127.0.0.1:4100/x')).toBe('')
  })

  it('are left out rather than written over others', () => {
    const { env, notes } = siteVariables([site], { GIT_CONFIG_COUNT: '9999' })
    expect(env).not.toHaveProperty('GIT_CONFIG_COUNT')
    expect(notes).toHaveLength(1)
  })
})

describe('the variables of the forward proxy', () => {
  const url = 'http://mayfly:secret@127.0.0.1:4000'

  it('keep what the user reaches without a proxy, but nothing where a credential is used', () => {
    const env = { NO_PROXY: '.corp.example, github.com,*', no_proxy: '10.0.0.0/8,.amazonaws.com' }
    const made = forwardVariables(url, '/run/roots.pem', env, [
      'api.github.com',
      'github.com',
      '*.amazonaws.com',
    ])
    expect(made).toMatchObject({
      ...{ HTTPS_PROXY: url, https_proxy: url },
      NO_PROXY: 'localhost,127.0.0.1,::1,[::1],.corp.example,10.0.0.0/8',
    })
    expect(made).not.toHaveProperty('HTTP_PROXY')
    expect(made).not.toHaveProperty('ALL_PROXY')
    expect(forwardVariables(url, '/x', { ALL_PROXY: 'socks5://corp' })).toMatchObject({ ALL_PROXY: url })
  })

  it('lead git past a proxy of its own settings', () => {
    const made = forwardVariables(url, '/x', { GIT_CONFIG_COUNT: '3' })
    expect(made).toMatchObject({
      GIT_CONFIG_COUNT: '4',
      GIT_CONFIG_KEY_3: 'http.proxy',
      GIT_CONFIG_VALUE_3: url,
    })
  })

  it('name the one file for every program', () => {
    const made = forwardVariables(url, '/run/roots.pem', {})
    expect(ROOT_FILES.map((name) => made[name])).toEqual(ROOT_FILES.map(() => '/run/roots.pem'))
  })
})

describe('the file with the roots', () => {
  let directory: string
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'mayfly-ways-'))
  })
  afterAll(() => rm(directory, { recursive: true }))

  const authority = createAuthority(Date.now)
  const certificatesIn = (text: string) =>
    text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []

  it('has the roots of the system, of the environment and of the run, each once', async () => {
    const corporate = createAuthority(Date.now).certificate
    const file = join(directory, 'corporate.pem')
    await writeFile(file, `# ours\n${corporate}\n${corporate}`)
    const env = { SSL_CERT_FILE: file, NODE_EXTRA_CA_CERTS: file, CURL_CA_BUNDLE: '/missing', DENO_CERT: '' }
    const path = await writeBundle(directory, authority.certificate, env)
    const found = certificatesIn(await readFile(path, 'utf8'))
    expect(found.length).toBeGreaterThan(20)
    expect(new Set(found).size).toBe(found.length)
    for (const one of [corporate, authority.certificate])
      expect(
        found.filter((pem) => new X509Certificate(pem).raw.equals(new X509Certificate(one).raw)),
      ).toHaveLength(1)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  })

  it('never replaces that of another run', async () => {
    const first = await writeBundle(directory, authority.certificate, {})
    await chmod(first, 0o400)
    const second = await writeBundle(directory, createAuthority(Date.now).certificate, {})
    expect(second).not.toBe(first)
  })
})
