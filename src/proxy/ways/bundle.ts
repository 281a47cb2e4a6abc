type Env = Readonly<Record<string, string | undefined>>

/**
 * Writes the roots that the child trusts so far, and the authority of the run, to a new file. Returns its path. `directory` is the
 * run's own, of mode 0700. `env`: the environment that names further roots.
 */
export async function writeBundle(_directory: string, _certificate: string, _env: Env): Promise<string> {
  throw new Error('not built yet')
}
