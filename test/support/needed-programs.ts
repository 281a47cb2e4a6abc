import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/**
 * What a file starts, and so each test file that imports it. Where one of these programs is missing, such test files are left out
 * and named at the end of the run; in CI they fail, because `.ci/run` installs them all. Single tests use `hasPrograms`.
 */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  'test/support/certificates.ts': ['openssl'],
  'test/support/console.ts': ['chromium'],
  'test/support/docker-registry.ts': ['docker-registry'],
  'test/support/git-server.ts': ['fcgiwrap', 'nginx'],
  'test/support/ldap-server.ts': ['/usr/sbin/slapd', 'openssl'],
  'test/support/mariadb-server.ts': ['mariadbd', 'mariadb-install-db'],
  'test/support/mosquitto-client.ts': ['mosquitto_pub'],
  'test/support/mosquitto-server.ts': ['mosquitto'],
  'test/support/nats-server.ts': ['nats-server'],
  'test/support/rabbitmq-server.ts': ['/usr/lib/rabbitmq/bin/rabbitmq-server'],
  'test/support/redis-server.ts': ['redis-server'],
  'test/support/rgw-server.ts': ['radosgw', 'ceph-mon', 'ceph-osd'],
  'test/support/rsa-certificate.ts': ['openssl'],
  'test/support/ssh-certificate.ts': ['ssh-keygen'],
  'test/support/ssh-server.ts': ['/usr/sbin/sshd', 'ssh'],
  'test/support/tls-server.ts': ['openssl', 'nginx'],
  'test/docs/backend-page.ts': ['curl'],
  'test/docs/guide-hosted-agents.test.ts': ['curl', 'jq'],
  'test/docs/installed-server.ts': ['curl'],
  'test/docs/start.test.ts': ['psql', 'curl'],
  'test/package/package-manual.test.ts': ['man'],
  'test/proxy/clients/gh.test.ts': ['gh'],
  'test/proxy/clients/git.test.ts': ['git'],
  'test/proxy/clients/http.test.ts': ['curl', 'go'],
  'test/proxy/clients/kubectl-exec.test.ts': ['kubectl', 'go'],
  'test/proxy/clients/kubectl.test.ts': ['kubectl'],
  'test/proxy/clients/pip.test.ts': ['/usr/bin/pip'],
  'test/proxy/databases/postgres.test.ts': ['psql'],
  'test/real/aws.test.ts': ['aws'],
  'test/real/gh.test.ts': ['gh'],
  'test/real/git.test.ts': ['gpg'],
  'test/real/kubectl.test.ts': ['kubectl'],
  'test/real/ldap.test.ts': ['ldapsearch'],
  'test/real/local-rule.test.ts': ['curl', 'nginx', 'haproxy'],
  'test/real/mysql.test.ts': ['mariadb'],
  'test/real/postgres-many.test.ts': ['psql'],
  'test/real/rabbitmq.test.ts': ['amqp-publish'],
  'test/real/redis.test.ts': ['redis-cli'],
  'test/real/registry-realm.test.ts': ['skopeo'],
  'test/real/registry.test.ts': ['skopeo'],
  'test/real/run-psql.test.ts': ['psql'],
  'test/real/sign.test.ts': ['gpg'],
  'test/real/signing.test.ts': ['gpg'],
  'test/real/x509.test.ts': ['openssl'],
  'src/backends/kubernetes/kind.test.ts': ['kubectl'],
  'src/backends/postgres/tls.test.ts': ['openssl'],
  'src/backends/ssh/kind.test.ts': ['ssh-keygen'],
  'src/backends/x509/kind.test.ts': ['openssl'],
  'src/plugins/process/certificate.test.ts': ['openssl'],
}

/** Whether these programs are here. True in CI, where a test fails for want of a program. */
export function hasPrograms(...programs: readonly string[]): boolean {
  return process.env['CI'] !== undefined || missingOf(programs).length === 0
}

function missingOf(programs: readonly string[]): string[] {
  const script = `for one; do command -v "$one" >/dev/null || echo "$one"; done`
  const said = execFileSync('sh', ['-c', script, 'sh', ...programs], { encoding: 'utf8' })
  return said.split('\n').filter((line) => line !== '')
}

/** Test files that cannot run here, with what each of them misses, but for those that are to run all the same. */
export function filesWithoutPrograms(
  mustRun: (file: string) => boolean,
): ReadonlyMap<string, readonly string[]> {
  if (process.env['CI'] !== undefined) return new Map()
  const missing = new Set(missingOf([...new Set(Object.values(NEEDED).flat())]))
  if (missing.size === 0) return new Map()
  const all = ['src', 'test', 'scripts', 'bench'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts') && !name.includes('node_modules'))
      .map((name) => `${folder}/${name}`),
  )
  const without = all.sort().map((file) => {
    const needed = new Set(filesBehind(file).flatMap((one) => NEEDED[one] ?? []))
    return [file, [...needed].filter((program) => missing.has(program))] as const
  })
  return new Map(without.filter(([file, programs]) => programs.length > 0 && !mustRun(file)))
}

/** The file and what it imports of `test/`, and so on. */
function filesBehind(file: string, known = new Set<string>()): string[] {
  if (known.has(file) || !existsSync(join(ROOT, file))) return []
  known.add(file)
  const text = readFileSync(join(ROOT, file), 'utf8')
  for (const [, path = ''] of text.matchAll(/(?:from|import\()\s*'(\.[^']+\.ts)'/g)) {
    const imported = relative(ROOT, join(ROOT, dirname(file), path))
    if (imported.startsWith('test/')) filesBehind(imported, known)
  }
  return [...known]
}

/** A reporter of vitest: what was left out, and why. */
export function reportLeftOut(files: ReadonlyMap<string, readonly string[]>) {
  return {
    onTestRunEnd(): void {
      if (files.size === 0) return
      const programs = [...new Set([...files.values()].flat())].sort()
      console.log(`\nSkipped ${files.size} files of tests, for want of ${programs.join(', ')}:`)
      for (const [file, missing] of files) console.log(`  ${file} (${missing.join(', ')})`)
    },
  }
}
