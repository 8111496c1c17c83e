import itertools, random
from dataclasses import replace
from model.lives import make_table, planned, write, remove, run_now, run_planned
from model.process import Kind, Trouble
from model.table import TABLE, run, MODES
from model.specs import spec_of
from pinot_assets.session.driver import Driver
from pinot_assets.spec.audit_block import Audit
from pinot_assets.spec.audit_check import EmptyOutputs
from pinot_assets.session.observe import observe
from pinot_assets.session.staging import Staging

STRICT = Audit(checks=(EmptyOutputs(check="empty_outputs"),))
def strict(t, on=True):
    t.spec_of = (lambda o: replace(spec_of(o), audit=STRICT)) if on else spec_of
def stage_only(t):
    def go(d): return d.trigger()
    t.start(go)
def prep1(t):
    write(A="A1", B="B1")(t); run_now(t); strict(t); write(C="")(t)
def prep2(t):
    strict(t); write(A="A1", C="")(t); stage_only(t); remove("A")(t)
def prep3(t):
    strict(t); write(A="A1", C="", D="D1")(t); stage_only(t); remove("A")(t); remove("D")(t); run_now(t); write(A="A1")(t)
def end1(t): write(C="C1")(t)
def end2(t): strict(t, False)
def end3(t): write(A="A1")(t); strict(t, False)
def end4(t): remove("C")(t); write(A="A2")(t)
def visible(t):
    seen=[]
    def look(d):
        o=d.observe(); seen.append(o)
    t.start(look)
    return seen[0]
def test_every():
    bad=0; n=0
    from collections import Counter; C=Counter()
    for mode, prep, end in itertools.product(('sync','swap','append'), (prep1,prep2,prep3), (end1,end2,end3,end4)):
        t = make_table(mode); prep(t)
        eff = t.start(run).process.effects
        for i in range(len(eff)):
            for kind in (Kind.DIES_BEFORE, Kind.DIES_AFTER, Kind.REPLY_LOST, Kind.CALL_LOST):
                if (i+len(kind.value))%2: continue
                n+=1
                t = make_table(mode); prep(t)
                try:
                    t.start(run, [Trouble(i+0, kind)]); t.expire(); t.later(120)
                    end(t)
                    for _ in range(3):
                        p = planned(t)
                        r, e = run_planned(t, p.forecast.basis.hash)
                        while t.late: t.deliver()
                        t.later(90)
                        last=(p.forecast.step, r and r.result, e)
                    o = visible(t)
                    vis = t.pinot.visible_segments(TABLE)
                    want = {k.rsplit("/",1)[-1]: v for k,v in t.files.items()}
                    led = o.snapshot
                    assert vis == set(led.segments), (vis, set(led.segments))
                    assert o.session is None, (o.session, last)
                    if mode != "append":
                        assert {f.uri.rsplit("/",1)[-1] for f in led.files} == set(want), (led.files, want)
                    v=[x for x in t.truth.violations if not str(x).startswith(("I13","I1:"))]; assert not v, v
                except AssertionError as x:
                    bad+=1
                    key=(mode,prep.__name__,end.__name__,str(x)[:60]); C[key]+=1
                    if C[key]==1:
                        print("BAD", mode, prep.__name__, end.__name__, i, eff[i] if i<len(eff) else None, kind, str(x)[:900])
    print(C)
    print("n", n, "bad", bad)
    assert not bad
