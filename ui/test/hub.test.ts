import assert from "node:assert/strict";
import { test } from "node:test";
import { type HubCluster, type HubDocument, clusterState, commonCode, filterClusters, missingText, sortClusters } from "../src/hub/document";

function cluster(name: string, values: Partial<HubCluster> = {}): HubCluster {
  return { name, error: null, remarks: [], nextSteps: [], nodes: 2, pendingPods: 0, driftedNodes: 0, pauses: [], messages: [], code: "aaa", ...values };
}
const names = (clusters: HubCluster[]) => clusters.map(({ name }) => name);

test("the state of a cluster is its most urgent one", () => {
  const pending = { pendingPods: 1, pauses: ["by anna"], driftedNodes: 1 };
  const states = [
    cluster("a", { error: "AccessDenied" }),
    cluster("b", { silent: true, messages: ["x"] }),
    cluster("c", { messages: ["x"], ...pending }),
    cluster("d", pending),
    cluster("e", { pauses: ["by anna"], driftedNodes: 1 }),
    cluster("f", { driftedNodes: 1 }),
    cluster("g"),
  ].map(clusterState);
  assert.deepEqual(states, ["unseen", "silent", "incomplete", "pending", "paused", "drifted", "ok"]);
});

test("unknown values come last in both directions, and numbers in versions are compared as numbers", () => {
  const clusters = [
    cluster("a", { nodes: null, kubernetesVersion: "1.9" }),
    cluster("b", { nodes: 5, kubernetesVersion: "1.34" }),
    cluster("c", { nodes: 12, kubernetesVersion: null }),
    cluster("d", { nodes: undefined, kubernetesVersion: "1.34" }),
  ];
  assert.deepEqual(names(sortClusters(clusters, "Nodes", 1)), ["b", "c", "a", "d"]);
  assert.deepEqual(names(sortClusters(clusters, "Nodes", -1)), ["c", "b", "a", "d"]);
  assert.deepEqual(names(sortClusters(clusters, "Kubernetes", 1)), ["a", "b", "d", "c"]);
  assert.deepEqual(names(sortClusters([cluster("z"), cluster("y", { error: "x" })], "State", 1)), ["y", "z"]);
});

test("clusters are found by all words, and those that need attention can be selected", () => {
  const clusters = [cluster("prod-eu"), cluster("prod-us", { pendingPods: 3 }), cluster("dev", { error: "AccessDenied" })];
  assert.deepEqual(names(filterClusters(clusters, "PROD us", false)), ["prod-us"]);
  assert.deepEqual(names(filterClusters(clusters, "", true)), ["prod-us", "dev"]);
  assert.deepEqual(names(filterClusters(clusters, "could not be read", false)), ["dev"]);
});

test("the version of most clusters is the common one, and a tie has none", () => {
  assert.equal(commonCode([cluster("a"), cluster("b"), cluster("c", { code: "bbb" })]), "aaa");
  assert.equal(commonCode([cluster("a"), cluster("c", { code: "bbb" })]), null);
  assert.equal(commonCode([cluster("a", { code: null })]), null);
});

test("totals name the clusters that they do not contain", () => {
  const missing = [
    { cluster: "gone", values: ["nodes", "price"] },
    { cluster: "old", values: ["pending pods"] },
  ];
  const totals = { nodes: 2, usdPerHour: 1, dayUsd: 1, monthUsd: 1, pendingPods: 0, driftedNodes: 0, missing };
  const hub: HubDocument = { at: "2026-11-21T09:09:00Z", readIntervalSeconds: 300, totals, clusters: [cluster("gone", { error: "x" }), cluster("old")] };
  assert.equal(missingText(hub), "Not in the totals: gone (could not be read); old (pending pods)");
  assert.equal(missingText({ ...hub, totals: { ...totals, missing: [] }, clusters: [cluster("old")] }), "");
});
