// views.h: SQL views for people who query a database themselves (docs/formats.md lists their columns; they stay). Part
// of the schema: schema.cc's migrations create them. Ids are hex, scores doubles beside exact fractions, texts TEXT.
#pragma once

namespace iha::coordinator {

inline constexpr const char* kViews = R"sql(
CREATE VIEW v_job AS
SELECT lower(hex(sweep)) AS sweep, lower(hex(id)) AS job, model, entry_index AS entry,
       spec ->> '$.entry.benchmark' AS benchmark, spec -> '$.entry.options' AS options,
       spec ->> '$.entry.sampling.samples' AS samples, spec ->> '$.entry.sampling.temperature' AS temperature,
       spec ->> '$.entry.sampling.seed' AS seed, items, numerics_id, grader_version,
       spec ->> '$.benchmark_version' AS benchmark_version, spec ->> '$.data_digest' AS data_digest,
       spec ->> '$.prompt_digest' AS prompt_digest, cancel_requested AS cancelled
FROM job ORDER BY ord;

CREATE VIEW v_unscored AS
SELECT column1 AS code, column2 AS name, column3 AS counts_as_wrong FROM (VALUES
  (0, 'scored', 0), (1, 'pending', 0), (2, 'prompt_too_long', 1), (3, 'quarantined', 1), (4, 'cancelled', 0),
  (5, 'grader_error', 1), (6, 'grader_unavailable', 0), (7, 'undefined', 0), (8, 'generator_dead_end', 0),
  (9, 'data_exhausted', 0));

-- One row for each committed item, metric and grader version. `state` is "scored" or why it has no score.
CREATE VIEW v_item AS
SELECT lower(hex(j.sweep)) AS sweep, j.model, j.entry_index AS entry, j.spec ->> '$.entry.benchmark' AS benchmark,
       r.item, r.item_id, v.metric, v.grader_version, u.name AS state,
       CASE WHEN v.unscored = 0 THEN v.num * 1.0 / v.den END AS score, v.num, v.den, CAST(v.winner AS TEXT) AS winner
FROM item_result r JOIN job j ON j.id = r.job JOIN item_value v ON v.job = r.job AND v.item = r.item
JOIN v_unscored u ON u.code = v.unscored
WHERE r.unscored = 0
UNION ALL
SELECT lower(hex(j.sweep)), j.model, j.entry_index, j.spec ->> '$.entry.benchmark', r.item, r.item_id, m.value,
       j.grader_version, u.name, NULL, 0, 1, ''
FROM item_result r JOIN job j ON j.id = r.job JOIN v_unscored u ON u.code = r.unscored,
     json_each(j.spec, '$.entry.metrics') m
WHERE r.unscored <> 0;

-- One row for each sample and metric, with its text.
CREATE VIEW v_sample AS
SELECT lower(hex(j.sweep)) AS sweep, j.model, j.entry_index AS entry, j.spec ->> '$.entry.benchmark' AS benchmark,
       s.item, r.item_id, s.k AS sample, CAST(g.text AS TEXT) AS text,
       CASE g.finish WHEN 1 THEN 'eos' WHEN 2 THEN 'stop' ELSE 'length' END AS finish_reason, g.prompt_tokens,
       length(g.tokens) / 4 AS tokens, a.metric, a.grader_version, CAST(a.extracted AS TEXT) AS extracted, a.valid,
       u.name AS state, CASE WHEN a.unscored = 0 THEN a.num * 1.0 / a.den END AS score, CAST(a.reason AS TEXT) AS reason
FROM sample s JOIN job j ON j.id = s.job JOIN item_result r ON r.job = s.job AND r.item = s.item
JOIN generation g ON g.gen_key = s.gen_key
JOIN grade a ON a.job = s.job AND a.item = s.item AND a.k = s.k
JOIN v_unscored u ON u.code = a.unscored;

-- One row for each cell of a table: `value` is over the finished items, complete when none is missing. As in tables, an
-- item that finished without a score for the model's or the grader's sake counts as wrong, a cell without any item has
-- a row and no value, and so have an unfinished one of a sweep with an item_order and one of settled votes.
CREATE VIEW v_cell AS
SELECT sweep, model, entry, benchmark, metric, grader_version, planned, scored,
       CASE WHEN NOT settled AND (complete OR NOT ordered) THEN mean END AS value, complete
FROM (SELECT i.sweep, i.model, i.entry, i.benchmark, i.metric, i.grader_version, j.items AS planned,
             sum(i.state = 'scored') AS scored,
             avg(CASE WHEN i.state = 'scored' THEN i.score WHEN u.counts_as_wrong THEN 0 END) AS mean,
             sum(i.state = 'scored' OR u.counts_as_wrong) = j.items AS complete,
             EXISTS (SELECT 1 FROM sweep w WHERE lower(hex(w.id)) = i.sweep AND w.spec ->> '$.item_order' IS NOT NULL)
             AS ordered,
             EXISTS (SELECT 1 FROM job b WHERE lower(hex(b.id)) = j.job AND b.spec ->> '$.entry.stop_settled_votes')
             AS settled
      FROM v_item i JOIN v_job j ON j.sweep = i.sweep AND j.model = i.model AND j.entry = i.entry
      JOIN v_unscored u ON u.name = i.state
      GROUP BY i.sweep, i.model, i.entry, i.metric, i.grader_version)
UNION ALL
SELECT lower(hex(j.sweep)), j.model, j.entry_index, j.spec ->> '$.entry.benchmark', m.value, j.grader_version, j.items,
       0, NULL, 0
FROM job j, json_each(j.spec, '$.entry.metrics') m
WHERE NOT EXISTS (SELECT 1 FROM item_result r WHERE r.job = j.id);
)sql";

}  // namespace iha::coordinator
