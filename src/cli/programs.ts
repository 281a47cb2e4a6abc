/** The names under which other programs call this command, and the verb that each means. */
export const PROGRAMS: Readonly<Record<string, string>> = {
  'docker-credential-mayfly': 'docker-credential',
  'terraform-credentials-mayfly': 'terraform-credentials',
}
