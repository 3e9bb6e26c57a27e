// Answers a question in words of a reader: no word is required, and a word finds its other forms and its synonyms.
;(() => {
  /** Words that say nothing about the subject of a question. */
  const stopWords = new Set(
    `a about all am an and any are as at be been by can could do does each every for from get give had has have how i if in into
    is it its let make many me my need of off on one or our own set should so some than that the their them then there these
    they this those to up us use used uses using want was we were what when where which who whose why will with would you
    your`.split(/\s+/),
  )

  /** Other words of the docs for what readers ask. */
  const synonyms = {
    abort: 'cancel',
    alert: 'notification',
    approval: 'answer',
    approve: 'answer',
    auth: 'authentication',
    authenticate: 'authentication',
    bearer: 'authentication',
    bulk: 'many',
    changelog: 'changes',
    ci: 'pipeline',
    config: 'configuration',
    credential: 'secret',
    database: 'postgresql store',
    db: 'postgresql store',
    debug: 'evidence trace',
    email: 'mail',
    env: 'environment',
    erase: 'delete',
    fatal: 'retries',
    forget: 'forgotten',
    forgot: 'forgotten',
    frontend: 'page client',
    hang: 'stuck',
    hook: 'webhook',
    human: 'person',
    install: 'running package',
    k8s: 'kubernetes',
    kill: 'cancel',
    login: 'sign signing',
    logon: 'sign signing',
    lost: 'forgotten',
    mail: 'email',
    metric: 'prometheus',
    monitor: 'observability metrics',
    nonretryable: 'retries',
    parallel: 'concurrency',
    password: 'signing',
    pause: 'wait',
    permission: 'roles scopes',
    pipeline: 'ci',
    postgres: 'postgresql',
    recover: 'restore',
    remove: 'delete',
    repeat: 'rerun',
    replay: 'rerun',
    reset: 'forgotten',
    restart: 'rerun',
    revert: 'rollback',
    search: 'find',
    sso: 'identity provider',
    stop: 'cancel',
    terminate: 'cancel',
    throttle: 'rate',
    trigger: 'queue',
    undo: 'rollback',
    unit: 'test',
    variable: 'environment variables',
  }

  /** A question in words is about a task more often than about one operation. The id of an operation finds it anyway. */
  const operationWeight = 0.75

  /** The start of all forms of a word: of `deployment` and `deploying`, `deploy`. */
  function stemOf(word) {
    const endings = /(?:ations?|ates?|ating|ated|ments?|ings?|ies|ied|ions?|ers?|ors?|ed|es|e|s|y)$/
    const stem = word.replace(endings, '')
    // `cancelled` and `running` double the last letter.
    return stem.length < 3 ? word : /([bdglmnpt])\1$/.test(stem) ? stem.slice(0, -1) : stem
  }

  function wordsOf(text) {
    const spelled = text.trim().replace(/\blog(?:ging|ged)?[ -]?in(?:to)?\b/gi, 'sign-in')
    const words = spelled.split(/[^\p{L}\p{N}_]+/u).filter(Boolean)
    // `file-in-use` is a name, of which each word counts.
    const telling = /\s/.test(spelled) ? words.filter((word) => !stopWords.has(word.toLowerCase())) : words
    return telling.length === 0 ? words : telling
  }

  /** The best score of each entry, by id, for a word as it is, for its other forms, or for its synonyms. */
  function scoresOf(index, word) {
    const stem = stemOf(word.toLowerCase())
    const others = synonyms[word.toLowerCase()] ?? synonyms[word.toLowerCase().replace(/s$/, '')] ?? ''
    const queries = [
      [word, 1, { prefix: true, fuzzy: 0.15 }],
      [stem, 0.9, { prefix: true, fuzzy: false, weights: { fuzzy: 0, prefix: 0.6 } }],
      [others, 0.6, { prefix: false, fuzzy: false, combineWith: 'OR' }],
    ]
    const best = new Map()
    for (const [text, weight, options] of queries) {
      for (const result of text === '' ? [] : index.search(text, options)) {
        const score = result.score * weight
        if (score > (best.get(result.id)?.score ?? 0)) best.set(result.id, { ...result, score })
      }
    }
    return best
  }

  function find(index, text) {
    const words = wordsOf(text)
    const found = new Map()
    for (const word of words) {
      for (const [id, result] of scoresOf(index, word)) {
        const { score = 0, matched = 0 } = found.get(id) ?? {}
        found.set(id, { ...result, score: score + result.score, matched: matched + 1 })
      }
    }
    return [...found.values()].map((result) => {
      const weight = result.href.includes('#/') ? operationWeight : 1
      return { ...result, score: (weight * result.score * result.matched) / words.length }
    })
  }

  /** The results of all indexes, best first. */
  globalThis.searchDocs = (indexes, text) =>
    indexes.flatMap((index) => find(index, text)).sort((a, b) => b.score - a.score)
})()
