/** The section of a version in the changelog, or why it cannot be released yet. */
export function releaseNotes(changelog: string, version: string): { text: string } | { fault: string } {
  const sections = changelog.split(/^## /m).slice(1)
  const section = sections.find((one) => one.startsWith(`[${version}]`))
  if (section === undefined) return { fault: `CHANGELOG.md has no section [${version}]` }
  const [title = '', ...lines] = section.split('\n')
  if (!/\] - \d{4}-\d\d-\d\d$/.test(title))
    return {
      fault: `the section [${version}] of CHANGELOG.md has no date: write "## [${version}] - YYYY-MM-DD"`,
    }
  return { text: `${lines.join('\n').trim()}\n` }
}
